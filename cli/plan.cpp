// tidepool plan: decides, proves and optionally saves a plan without running it.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <span>

#include "base/file.h"
#include "base/json.h"
#include "base/quantity.h"
#include "branches_note.h"
#include "decision_report.h"
#include "file_tier_options.h"
#include "learning_report.h"
#include "lower/overhead.h"
#include "lower/plan_file.h"
#include "memory_report.h"
#include "option_names.h"
#include "other_algorithms.h"
#include "planner_work.h"
#include "planners/registry.h"
#include "planners/toolkit/wear.h"
#include "profile_source.h"
#include "schedule/plan_totals.h"
#include "several_devices.h"
#include "spill_options.h"
#include "subject.h"
#include "terminal_observer.h"
#include "train/budget.h"
#include "train/learning.h"
#include "train/output_file.h"
#include "train/parallel_plan.h"
#include "train/planning.h"
#include "train/proven_gap.h"

namespace tidepool::cli {
namespace {

struct PlanArguments {
  SubjectArguments subject;
  BudgetSpec budget;
  PlannerSpec planner;
  std::string output;
  bool explain = false;
  std::int32_t host_cores = 1;
};

std::string ms(Nanos t) { return fmt::format("{:.3f}", to_ms(t)); }

/// A plan that was made, and what people want to know of it.
struct Made {
  const PlanArguments& arguments;
  const Subject& subject;
  const ObtainedPlan& obtained;
  PlanFile file;
  Nanos unlimited{};              ///< an iteration without a budget
  double overhead = 0;            ///< over that
  std::optional<Bytes> budget{};  ///< this and what follows with the resident bytes; none: no limit
  Bytes peak = 0;
  Bytes footprint = 0;
  std::optional<Bytes> written{};  ///< to the machine's file in an iteration, where it has one
  bool stopped = false;            ///< the best until then
  RoundsReport rounds{};
  ProvenGap gap{};
  std::optional<ParallelPlan> parallel{};  ///< of all devices; the rest is of one
};

/// `profile`: of the sub-batch of the plan.
Made made_of(const PlanArguments& a, const Subject& subject, const Profile& profile,
             const Budget& budget, const ObtainedPlan& obtained) {
  const Lowered& lowered = obtained.planned.lowered;
  Made made{a,
            subject,
            obtained,
            {profile.fingerprint, profile.program, profile.machine,
             limited(budget) ? budget.device : lowered.plan.device_bytes(), budget.host,
             lowered.iteration_time, lowered.compute_time, lowered.strategy, lowered.plan}};
  made.file.fake = profile.fake;
  made.unlimited = unlimited_time(profile.program, profile.machine, lowered.strategy.algorithms);
  made.overhead = overhead(lowered.iteration_time, made.unlimited);
  if (limited(budget)) made.budget = budget.device + subject.resident;
  made.peak = subject.unlimited_peak();
  made.rounds = subject.report_of(profile.program, best_algorithms(a.subject.job, a.planner.name));
  made.footprint = lowered.plan.device_bytes() + subject.resident;
  if (has_file(profile.machine)) made.written = written_to_files(lowered.plan);
  made.stopped = interrupted();
  return made;
}

/// What is saved: the plan that runs.
PlanFile file_of(const Made& m) {
  if (!m.parallel) return m.file;
  const ParallelPlan& p = *m.parallel;
  PlanFile file = m.file;
  file.program = p.program;
  file.machine = p.machine;
  file.iteration_time = p.iteration_time;
  file.plan = p.plan;
  file.part = m.file.plan;
  file.strategy =
      keep_everything(p.program, AccessIndex(p.program), chosen_algorithms(p.program, p.plan));
  file.strategy.planner = p.plan.planner;
  file.device_budget = std::max(file.device_budget, largest_device(p.plan));
  return file;
}

/// How much faster than one device without a budget; none where that is not known.
std::optional<double> speed_up(const Made& m) {
  if (!m.parallel || !m.subject.alone) return std::nullopt;
  return to_ms(*m.subject.alone) / to_ms(m.parallel->iteration_time);
}

Json parallel_json(const Made& m) {
  if (!m.parallel) return nullptr;
  const ParallelPlan& p = *m.parallel;
  Json bytes = Json::array();
  for (const Arena& arena : p.plan.arenas) bytes.push_back(arena.bytes);
  const auto faster = speed_up(m);
  return {{"devices", p.machine.devices()},
          {"accumulation", to_text(m.arguments.subject.job.accumulation)},
          {"host_cores", m.arguments.host_cores},
          {"predicted_ms", to_ms(p.iteration_time)},
          {"overhead", overhead(p.iteration_time, m.unlimited)},  // over the part of one device
          {"one_device_ms", m.subject.alone ? Json(to_ms(*m.subject.alone)) : Json(nullptr)},
          {"speed_up", faster ? Json(*faster) : Json(nullptr)},
          {"space_bytes", std::move(bytes)},
          {"check_ms", to_ms(p.check_time)}};
}

void print_choices(const Made& m) {
  const OtherAlgorithms others(m.file.program, m.file.strategy.algorithms);
  if (others.ops > 0) say("  algorithms {}\n", others.text());
  if (m.rounds.chosen && m.rounds.rounds > 1) {
    say("  rounds     {} samples each hold {} with everything kept, the whole batch {}\n",
        m.file.program.sub_batch,
        format_bytes(m.subject.resident +
                     unlimited_peak(m.file.program, m.file.machine.alignment())),
        format_bytes(m.peak));
  }
}

void print_devices(const Made& m) {
  const ParallelPlan& p = *m.parallel;
  say("  devices    {} with gradients {}: {} ms an iteration, proved in {}; overhead {:.1f} % "
      "over\n"
      "             the part of one without a budget\n",
      p.machine.devices(), to_text(m.arguments.subject.job.accumulation), ms(p.iteration_time),
      format_time(p.check_time), 100 * overhead(p.iteration_time, m.unlimited));
  if (const auto faster = speed_up(m)) {
    say("             {:.2f} times as fast as one device without a budget ({} ms)\n", *faster,
        ms(*m.subject.alone));
  }
}

void print_json(const Made& m) {
  const Planned& planned = m.obtained.planned;
  const Lowered& lowered = planned.lowered;
  const std::string& output = m.arguments.output;
  Json passes = Json::object();
  Json notes = Json::array();
  for (const std::string& note : planned.notes) notes.push_back(with_option_names(note));
  for (const PassTime& p : lowered.pass_times) passes[p.pass] = to_ms(p.time);
  Json out = {{"schema", 1},
              {"program", m.file.program.name},
              {"machine", m.file.machine.name},
              {"planner", m.arguments.planner.name},
              {"budget_bytes", m.budget ? Json(*m.budget) : Json(nullptr)},
              {"unlimited_peak_bytes", m.peak},
              {"resident_bytes", m.subject.resident},
              {"footprint_bytes", m.footprint},
              {"host_bytes", (m.parallel ? m.parallel->plan : lowered.plan).host_bytes()},
              {"peak_load_bytes", lowered.peak_load + m.subject.resident},
              {"predicted_ms", to_ms(lowered.iteration_time)},
              {"unlimited_ms", to_ms(m.unlimited)},
              {"compute_ms", to_ms(lowered.compute_time)},
              {"predicted_overhead", m.overhead},
              {"branches", count_branches(m.file.program)},
              {"packer", lowered.packer},
              {"added_waits", lowered.added_waits},
              {"streaming", lowered.streaming},
              {"plan_ms", to_ms(planned.plan_time)},
              {"check_ms", to_ms(planned.check_time)},
              {"pass_ms", std::move(passes)},
              {"notes", std::move(notes)},
              {"learning", learning_json(planned.learning.get())},
              {"plan_from", m.obtained.from},
              {"profile", m.subject.source ? to_json(*m.subject.source) : Json(nullptr)},
              {"output", output.empty() ? Json(nullptr) : Json(output)}};
  out["parallel"] = parallel_json(m);
  out.update(spaces_json(file_of(m)));
  if (m.arguments.explain) {
    out["decisions"] = decisions(m.file);
    out["other_algorithms"] = to_json(OtherAlgorithms(m.file.program, m.file.strategy.algorithms));
  }
  out["written_bytes"] = m.written ? Json(*m.written) : Json(nullptr);
  if (m.subject.memory) out["memory"] = memory_json(*m.subject.memory);
  m.rounds.add_to(out);
  m.gap.add_to(out);
  out["interrupted"] = m.stopped;
  print(out);
}

void print_text(const Made& m) {
  const Planned& planned = m.obtained.planned;
  const Lowered& lowered = planned.lowered;
  say("{} on {}: {} {} (unlimited peak {})\n", m.file.program.name, m.file.machine.name,
      m.arguments.planner.name, m.budget ? "in " + format_bytes(*m.budget) : "without a budget",
      format_bytes(m.peak));
  if (const std::string rounds = m.rounds.text(); !rounds.empty()) {
    say("  rounds     {}\n", rounds);
  }
  say("  footprint  {}{}, host {}, packed by {}\n", format_bytes(m.footprint),
      m.parallel ? " on the device that needs most" : "",
      format_bytes((m.parallel ? m.parallel->plan : lowered.plan).host_bytes()), lowered.packer);
  if (const std::string tier = file_tier_text(m.file); !tier.empty()) {
    say("  file       {}\n", tier);
  }
  if (m.parallel) {
    print_devices(m);
    say("             one device alone with its part, of batch and bus: {} ms, {} ms without a "
        "budget\n",
        ms(lowered.iteration_time), ms(m.unlimited));
  } else {
    say("  time       {} ms an iteration, {} ms without a budget: overhead {:.1f} %\n",
        ms(lowered.iteration_time), ms(m.unlimited), 100 * m.overhead);
  }
  if (m.subject.memory) {
    const ProcessMemory& memory = *m.subject.memory;
    say("  memory     {} for the process: {} left for the arena beside code, heap and inputs\n",
        format_bytes(memory.limit), format_bytes(memory.largest_arena(m.file.machine.alignment())));
  }
  if (m.written) say("  wear       {}\n", wear_text(*m.written, lowered.iteration_time));
  if (const std::string gap = with_option_names(m.gap.text()); !gap.empty()) {
    say("  gap        {}\n", gap);
  }
  say("  {:9}  {}, proved in {}\n", m.obtained.from == "cache" ? "cached" : "made in",
      format_time(planned.plan_time), format_time(planned.check_time));
  if (m.subject.resident > 0) {
    say("  resident   {} of the trace, in all of these; the saved plan and the notes are for the "
        "rest\n",
        format_bytes(m.subject.resident));
  }
  if (const std::string warning = m.rounds.warning(); !warning.empty()) {
    say("  note       {}\n", warning);
  }
  if (const std::string mark = mark_of_fake(m.subject.source); !mark.empty()) {
    say("  note       {}\n", mark);
  }
  for (const std::string& note : planned.notes) {
    say("  note       {}\n", with_option_names(note));
  }
  say("{}", branches_note(m.file.program, "  note       "));
  print_learning(planned.learning.get());
  if (lowered.streaming) say("  note       streaming: only the running op's tensors stay\n");
  if (m.arguments.explain) {
    print_choices(m);
    print_decisions(m.file);
  }
  if (!m.arguments.output.empty()) say("  saved      {}\n", m.arguments.output);
}

/// Writes the plan where it is asked for, and finds the optimality gap where there is one.
Result<void> save_and_prove(Made& made, const Budget& budget, Observer& observer) {
  const std::string& output = made.arguments.output;
  if (!output.empty()) {
    auto written = write_file(output, to_json(file_of(made)).dump(1) + "\n");
    if (!written) return written;
  }
  if (made.stopped) made.gap.unknown = "interrupted";
  if (made.parallel) made.gap.unknown = kNoGapOfSeveral;
  if (!made.gap.unknown.empty()) return {};
  observer.update(0, "how far the plan may be from the best");
  auto gap = proven_gap(made.file.program, made.file.machine, made.obtained.planned.lowered,
                        budget.device, {gap_time_limit(made.arguments.planner), interrupted});
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
  if (auto tier = check_file_tier(of.file_tier, named, of.job.devices); !tier) return tier;
  if (auto sound = check_planner_settings(std::span(&a.planner.name, 1), a.planner); !sound) {
    return sound;
  }
  const std::array inputs{a.subject.profile, a.subject.program, a.subject.machine,
                          a.subject.trace.file, a.planner.learning.network};
  if (auto other = check_no_input(a.output, inputs); !other) return other;
  const LearningSpec& learning = a.planner.learning;
  const std::array outputs{a.output, learning.save_network, learning.episode_log};
  if (auto distinct = check_distinct(outputs); !distinct) return distinct;
  return check_writable(a.output);
}

Result<int> plan(PlanArguments a, bool json) {
  if (auto sound = check_arguments(a); !sound) return fail(sound.error());
  a.subject.chooses = chooses_sub_batch(a.planner.name);
  const bool asked_to_choose = a.subject.job.choose_sub_batch;
  a.subject.job.choose_sub_batch |= a.subject.chooses;
  TerminalObserver observer;
  const Cache cache(a.subject.cache, observer);
  auto subject = subject_of(a.subject, a.budget, cache, observer);
  if (!subject) return fail(subject.error());
  const auto budget = budget_of(a.budget, *subject);
  if (!budget) return fail(budget.error());
  const auto parallel = parallel_program(a.subject.job, *subject);
  const auto of_one =
      parallel ? budget_of_part(*budget, *parallel, *subject->all, subject->rounds != nullptr)
               : budget;
  if (!of_one) return fail(of_one.error());
  const auto in_all = [&](Error error) {
    error = with_resident(std::move(error), *subject);
    return parallel ? of_all_devices(std::move(error), *budget, *of_one, *parallel, *subject->all)
                    : error;
  };
  const auto work = PlannerWork::make(*subject, a.subject.job, a.planner.name, *of_one);
  if (!work) return fail(in_all(work.error()));
  PlanRequest request{work->profile(), *of_one, a.planner.name, {}};
  request.options = planner_options(a.subject.job, a.planner);
  request.options.stop = interrupted;
  request.options.progress = &observer;
  request.options.may.sub_batch = work->chooses();
  request.workload = work->workload();
  request.learning = a.planner.learning;
  const auto obtained =
      obtain_plan(work->planner(), request, cache, a.subject.cache.replan, observer);
  if (!obtained) return fail(in_all(obtained.error()));
  const auto planned_for = work->profile(obtained->planned.sub_batch());
  if (!planned_for) return fail(planned_for.error());
  const Profile& profile = *planned_for;
  // A search that was stopped has a plan all the same: the best until then.
  Made made = made_of(a, *subject, profile, *budget, *obtained);
  made.rounds.kept_whole = asked_to_choose && subject->batch_norm && !subject->statistics;
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
  json ? print_json(made) : print_text(made);
  return made.stopped ? exit_code(ErrorCode::interrupted) : kOk;
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand("plan", "decide, prove and save a plan");
  add_subject_options(*command, arguments->subject);
  add_devices_options(*command, arguments->subject.job);
  command
      ->add_option("--host-cores", arguments->host_cores,
                   "with --devices: cores of the host that add gradients, for the simulated time")
      ->check(whole_number(1, 1024))
      ->needs("--devices")
      ->capture_default_str();
  add_size_options(*command, arguments->budget);
  add_file_tier_options(*command, arguments->subject.file_tier);
  add_planner_options(*command, arguments->planner);
  add_learning_options(*command, arguments->planner.learning);
  add_memory_options(*command, arguments->budget.memory, arguments->subject.job.device.spill,
                     Spilling::of_an_arena_too);
  command->add_option("-o,--output", arguments->output, "write the plan to this file");
  command->add_flag("--explain", arguments->explain, "say for each decision why");
  command->add_flag("--json", context.json, "one JSON object on stdout");
  arguments->subject.may_choose = true;
  std::vector<Ignored> ignored = ignored_by_subjects();
  ignored.push_back({"--evaluations", {"--time-limit"}});
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
