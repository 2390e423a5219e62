// tidepool plan: decides, proves and optionally saves a plan without running it.
#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/quantity.h"
#include "context.h"
#include "cost/spill.h"
#include "file_tier_options.h"
#include "job/offered_rounds.h"
#include "output_check.h"
#include "plan_report.h"
#include "planners/registry.h"
#include "planners/settings.h"
#include "planning/learning.h"
#include "planning/plan_subject.h"
#include "record_options.h"
#include "schedule/plan_totals.h"
#include "spill_options.h"
#include "subject_options.h"
#include "terminal_observer.h"

namespace tidepool::cli {
namespace {

MadePlan made_of(const PlanArguments& a, const Subject& subject, const SubjectPlan& plan) {
  const Lowered& lowered = plan.lowered();
  const Profile& profile = plan.profile;
  const Budget& budget = plan.budget;
  MadePlan made{a, subject, plan, plan_file(plan)};
  if (limited(budget)) made.budget = budget.device + subject.resident;
  made.peak = subject.unlimited_peak();
  made.footprint = plan.parallel ? largest_device(plan.running())
                                 : lowered.plan.device_bytes() + subject.resident;
  if (may_write_to_file(profile.machine)) made.written = written_to_files(lowered.plan);
  return made;
}

/// What people should know at once.
void tell_of(const MadePlan& made) {
  const Machine& machine = made.plan.profile.machine;
  const Bytes needed = made.plan.lowered().plan.device_bytes() + made.subject.resident;
  if (const Bytes there = machine.device_memory(); there > 0 && needed > there) {
    inform("tidepool: the plan needs {} of device memory; '{}' has {}\n", format_bytes_up(needed),
           machine.name, format_bytes(there));
  }
  if (made.plan.stopped) inform("tidepool: interrupted: this is the best plan until then\n");
}

Result<void> check_arguments(const PlanArguments& a) {
  if (auto known = make_planner(a.planner.name); !known) return fail(known.error());
  if (auto stated = check_chosen_rounds(a.subject.job); !stated) return stated;
  const SubjectSpec& of = a.subject;
  const std::string named = of.machine + of.trace.file;
  if (auto tier = check_file_tier(of.job.device.file_tier, named, of.job.devices); !tier)
    return tier;
  if (auto sound = check_planner_settings(std::span(&a.planner.name, 1), a.planner.values);
      !sound) {
    return sound;
  }
  std::vector<std::string> inputs = files_of(a.planner.values, OptionType::input_file);
  inputs.insert(inputs.end(),
                {a.subject.profile, a.subject.program, a.subject.machine, a.subject.trace.file});
  if (auto other = check_no_input(a.output, inputs); !other) return other;
  std::vector<std::string> outputs = files_of(a.planner.values, OptionType::output_file);
  outputs.push_back(a.output);
  if (auto distinct = check_distinct(outputs); !distinct) return distinct;
  return check_output(a.output);
}

Result<int> plan(const PlanArguments& a, bool json) {
  if (auto sound = check_arguments(a); !sound) return fail(sound.error());
  TerminalObserver observer;
  const Cache cache(a.subject.cache, observer);
  SubjectSpec asked = a.subject;
  asked.unmeasured = !meets_every_budget(a.planner.name);  // which names a budget of its own
  auto subject = subject_of(asked, a.budget, cache, observer);
  if (!subject) return fail(subject.error());
  const auto budget = budget_for(*subject, a.budget, a.planner.name);
  if (!budget) return fail(budget.error());
  const PlanTask task{a.planner, a.subject.cache.replan, a.host_cores};
  auto planned = plan_subject(*subject, *budget, task, cache, observer);
  if (!planned) return fail(planned.error());
  const MadePlan made = made_of(a, *subject, *planned);
  tell_of(made);
  if (!a.output.empty()) {
    const auto written = write_file(a.output, to_json(file_of(made)).dump(1) + "\n");
    if (!written) return fail(written.error());
  }
  if (auto proven = prove_gap(task, *planned, observer); !proven) return fail(proven.error());
  json ? print_plan_json(made) : print_plan(made);
  return planned->stopped ? exit_code(ErrorCode::interrupted) : kOk;
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand("plan", "decide, prove and save a plan");
  add_subject_options(*command, arguments->subject);
  add_replan_option(*command, arguments->subject.cache);
  add_devices_options(*command, arguments->subject.job);
  command
      ->add_option("--host-cores", arguments->host_cores,
                   "with --devices: cores of the host that add gradients, for the simulated time")
      ->check(whole_number(1, 1024))
      ->needs("--devices")
      ->capture_default_str();
  add_size_options(*command, arguments->budget);
  add_file_tier_options(*command, arguments->subject.job.device.file_tier);
  add_planner_options(*command, arguments->planner);
  add_planner_files(*command, arguments->planner);
  add_memory_options(*command, arguments->budget.memory, arguments->subject.job.device.spill,
                     Spilling::of_an_arena_too);
  command->add_option("-o,--output", arguments->output, "write the plan to this file");
  command->add_flag("--explain", arguments->explain, "say for each decision why");
  command->add_flag("--json", context.json, "one JSON object on stdout");
  arguments->subject.may_choose = true;
  std::vector<Ignored> ignored = ignored_by_subjects();
  for (const char* other : {"--profile", "--program", "--trace"}) {
    ignored.push_back({other, {"--devices", "--accumulation", "--host-cores"}});
  }
  refuse_ignored(*command, std::move(ignored));
  command->footer(R"(
Examples:
  tidepool plan vgg16 --budget 60% --machine gtx1080ti --explain
  tidepool plan tiny-vgg --data synthetic --budget 60% --reprofile --replan
  tidepool plan vgg16 --budget 50% --machine gtx1080ti --planner tide --evaluations 20000
  tidepool plan vgg16 --machine gtx1080ti --budget 60% --planner dqn --save-network vgg16.network
  tidepool plan vgg16-imagenet --batch 256 --machine k40 --devices 4 --budget 6GB --sub-batch 32
  tidepool profile tiny-vgg --data synthetic -o tiny.profile.json
  tidepool plan --profile tiny.profile.json --budget 60% -o tiny.plan.json
  tidepool plan vgg16 --batch 32 --data synthetic --memory 256MiB --spill /var/tmp -o vgg16.plan.json
  tidepool plan vgg16 --machine gtx1080ti --budget 30% --planner autoswap --sub-batch auto
  tidepool plan vgg16 --machine gtx1080ti --budget 40% --host-budget 300MB --file-tier 2.5GB,3GB
  tidepool plan --trace vgg16_batch100_3iterations.csv --budget 400MiB   # a trace of yours)");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] {
      catch_interrupts();
      arguments->subject.choosing = chooses_algorithms(arguments->planner.name);
      auto code = plan(*arguments, context.json);
      return code ? *code : report(code.error(), context.json);
    };
  });
}

}  // namespace tidepool::cli
