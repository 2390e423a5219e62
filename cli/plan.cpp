// tidepool plan: decides, proves and optionally saves a plan without running it.
#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/quantity.h"
#include "file_tier_options.h"
#include "job/job_spec.h"
#include "job/offered_rounds.h"
#include "lower/overhead.h"
#include "lower/plan_file.h"
#include "plan_report.h"
#include "planner_work.h"
#include "planners/registry.h"
#include "planners/settings.h"
#include "planning/budget.h"
#include "planning/learning.h"
#include "planning/obtain_plan.h"
#include "planning/parallel_plan.h"
#include "planning/planning_spec.h"
#include "planning/proven_gap.h"
#include "record_options.h"
#include "schedule/plan_totals.h"
#include "several_devices.h"
#include "spill_options.h"
#include "subject.h"
#include "terminal_observer.h"

namespace tidepool::cli {
namespace {

/// `profile`: of the sub-batch of the plan.
MadePlan made_of(const PlanArguments& a, const Subject& subject, const Profile& profile,
                 const Budget& budget, const ObtainedPlan& obtained) {
  const Lowered& lowered = obtained.planned.lowered;
  MadePlan made{a,
                subject,
                obtained,
                {profile.fingerprint, profile.program, profile.machine,
                 limited(budget) ? budget.device : lowered.plan.device_bytes(), budget.host,
                 lowered.iteration_time, lowered.compute_time, lowered.strategy, lowered.plan}};
  made.file.fake = profile.fake;
  const AlgorithmPolicy policy = best_algorithms(a.subject.job, true);
  made.unlimited = subject.unlimited_time(profile.program, policy);
  if (!subject.parallel) made.file.unlimited = made.unlimited;
  made.overhead = overhead(lowered.iteration_time, made.unlimited);
  if (limited(budget)) made.budget = budget.device + subject.resident;
  made.peak = subject.unlimited_peak();
  made.rounds = subject.report_of(profile.program, policy);
  made.footprint = lowered.plan.device_bytes() + subject.resident;
  if (may_write_to_file(profile.machine)) made.written = written_to_files(lowered.plan);
  made.stopped = interrupted();
  return made;
}

/// Writes the plan where it is asked for, and finds the optimality gap where there is one.
Result<void> save_and_prove(MadePlan& made, const Budget& budget, Observer& observer) {
  const std::string& output = made.arguments.output;
  if (!output.empty()) {
    auto written = write_file(output, to_json(file_of(made)).dump(1) + "\n");
    if (!written) return written;
  }
  if (made.stopped) made.gap.unknown = "interrupted";
  if (made.parallel) made.gap.unknown = kNoGapOfSeveral;
  if (!made.gap.unknown.empty()) return {};
  observer.update(0, "how far the plan may be from the best");
  auto gap =
      proven_gap(made.file.program, made.file.machine, made.obtained.planned.lowered,
                 made.unlimited, budget, {gap_time_limit(made.arguments.planner), interrupted});
  if (!gap) return fail(gap.error());
  made.gap = std::move(*gap);
  made.stopped = interrupted();
  return {};
}

Result<void> check_arguments(const PlanArguments& a) {
  if (auto known = make_planner(a.planner.name); !known) return fail(known.error());
  if (auto stated = check_chosen_rounds(a.subject.job); !stated) return stated;
  const SubjectArguments& of = a.subject;
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
  return check_writable(a.output);
}

/// Of each device.
Result<Budget> budget_of_devices(const BudgetSpec& spec, const std::string& planner,
                                 const JobSpec& job, const Subject& subject,
                                 const std::optional<ParallelProgram>& parallel) {
  auto budget = budget_of(spec, subject);
  if (budget) return budget;
  const Profile& profile = subject.profile;
  if (!parallel) {
    return fail(for_planner(planner, budget.error(), profile.program, profile.machine.alignment(),
                            algorithms_of(job)));
  }
  return fail(of_first_device(budget.error(), *parallel, subject.profile.machine.alignment()));
}

Result<int> plan(const PlanArguments& a, bool json) {
  if (auto sound = check_arguments(a); !sound) return fail(sound.error());
  TerminalObserver observer;
  const Cache cache(a.subject.cache, observer);
  auto subject = subject_of(a.subject, a.budget, cache, observer);
  if (!subject) return fail(subject.error());
  const auto parallel = parallel_program(a.subject.job, *subject);
  const auto budget =
      budget_of_devices(a.budget, a.planner.name, a.subject.job, *subject, parallel);
  if (!budget) return fail(budget.error());
  const auto of_one =
      parallel ? budget_of_part(*budget, *parallel, *subject->all, subject->rounds != nullptr)
               : budget;
  if (!of_one) return fail(of_one.error());
  const auto in_all = [&](Error error) {
    error = with_resident(std::move(error), *subject);
    return parallel ? of_all_devices(std::move(error), *budget, *of_one, *parallel, *subject->all)
                    : error;
  };
  const auto work = PlannerWork::make(*subject, a.planner.name, *of_one);
  if (!work) return fail(in_all(work.error()));
  PlanRequest request{work->profile(), *of_one, a.planner.name, {}};
  request.options = planner_options(a.subject.job, a.planner);
  request.options.stop = interrupted;
  request.options.progress = &observer;
  request.options.may.sub_batch = work->chooses();
  request.workload = work->workload();
  request.stated = a.planner.values;
  const auto obtained =
      obtain_plan(work->planner(), request, cache, a.subject.cache.replan, observer);
  if (!obtained) return fail(in_all(obtained.error()));
  const auto planned_for = work->profile(obtained->planned.sub_batch());
  if (!planned_for) return fail(planned_for.error());
  const Profile& profile = *planned_for;
  // A search that was stopped has a plan all the same: the best until then.
  MadePlan made = made_of(a, *subject, profile, *budget, *obtained);
  made.rounds.kept_whole =
      a.subject.job.choose_sub_batch && subject->batch_norm && !subject->statistics;
  if (const Bytes there = profile.machine.device_memory(); there > 0 && made.footprint > there) {
    inform("tidepool: the plan needs {} of device memory; '{}' has {}\n",
           format_bytes_up(made.footprint), profile.machine.name, format_bytes(there));
  }
  if (made.stopped) inform("tidepool: interrupted: this is the best plan until then\n");
  if (parallel) {
    auto plan_of_all = plan_of_devices(a.subject.job, *subject, made.file.program, made.file.plan,
                                       *budget, a.host_cores);
    if (!plan_of_all) return fail(plan_of_all.error());
    made.parallel = std::move(*plan_of_all);
    made.footprint = largest_device(made.parallel->plan);
  }
  if (auto finished = save_and_prove(made, *budget, observer); !finished) {
    return fail(finished.error());
  }
  json ? print_plan_json(made) : print_plan(made);
  return made.stopped ? exit_code(ErrorCode::interrupted) : kOk;
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
