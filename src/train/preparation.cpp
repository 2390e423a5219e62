#include "train/preparation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cost/turns_on_buses.h"
#include "job/offered_rounds.h"
#include "lower/overhead.h"
#include "lower/time_plan.h"
#include "measure/link_speed.h"
#include "measure/plan_from_file.h"
#include "measure/profiling_task.h"
#include "planners/registry.h"
#include "planning/budget.h"
#include "planning/make_plan.h"
#include "planning/measurement.h"
#include "planning/planning_spec.h"
#include "planning/process_memory.h"
#include "train/training_spec.h"

namespace tidepool {
namespace {

/// What plans of this training are compared with.
Nanos unlimited_time(const Job& job, const Program& program, const Machine& machine) {
  return unlimited_time(program, machine, best_algorithms(job.spec(), true));
}

/// Of planning: before it takes more than the memory of the whole process.
Stop limited_stop(const TrainingSpec& spec, Observer& observer) {
  const MemorySpec& memory = spec.budget.memory;
  if (!memory.given()) return observer.stop();
  return where_memory_ends(memory_of(memory).value_or(0), observer.stop());
}

PlanRequest request_of(const Profile& subject, const TrainingSpec& spec, const Budget& budget,
                       Observer& observer) {
  PlanRequest request{subject, budget, spec.planner.name, planner_options(spec.job, spec.planner)};
  request.options.stop = limited_stop(spec, observer);
  request.options.progress = &observer;
  request.options.may.sub_batch = false;
  request.stated = spec.planner.values;
  return request;
}

/// The plan to train with. `choice`: what every op has to run; none: what the planner picks.
Result<ObtainedPlan> training_plan(const Job& job, const TrainingSpec& spec, const Budget& budget,
                                   const Machine& machine, Planner& planner,
                                   const std::optional<AlgorithmChoice>& choice, const Cache& cache,
                                   Observer& observer) {
  const Program& program = job.program();
  const Profile subject{job.fingerprint(), choice ? restrict_to(*choice, program) : program,
                        machine};
  auto plan = obtain_plan(planner, request_of(subject, spec, budget, observer), cache,
                          spec.cache.replan, observer);
  if (!plan) return fail(plan.error());
  if (choice) widen(*choice, plan->planned.lowered);
  return plan;
}

/// The plan of the spec's file into `start`. `all`: the machine of all devices, where there are
/// several.
Result<void> use_plan_file(const Job& job, const TrainingSpec& spec,
                           const std::optional<Machine>& all,
                           const std::optional<AlgorithmChoice>& choice, Preparation& start) {
  if (all) {
    auto plan = parallel_plan_from_file(spec.plan, job, *all, start.budget);
    if (!plan) return fail(plan.error());
    start.plan = std::move(plan->part);
    start.parallel = std::move(plan->whole);
  } else {
    auto plan =
        plan_from_file(spec.plan, {job.fingerprint(), job.program(), start.machine}, start.budget);
    if (!plan) return fail(plan.error());
    start.plan = std::move(*plan);
  }
  if (!choice || chosen_algorithms(job.program(), start.lowered().plan) == *choice) return {};
  return fail(ErrorCode::bad_input,
              fmt::format("{}: runs other algorithms than {} was trained with; going on would "
                          "not be bit for bit the same training",
                          spec.plan, spec.resume));
}

/// Which profile the training uses, and its plan, into `start`, with what the planner chooses of
/// `offered`. Each size is measured when it is asked for.
Result<void> choose_rounds(Job& job, const TrainingSpec& spec, const ProfilingTask& task,
                           const std::vector<std::int64_t>& offered, Planner& planner,
                           const Cache& cache, Preparation& start, Observer& observer) {
  JobRounds rounds = rounds_of(job);
  rounds.offered = offered;
  auto sizes = sizes_within(rounds, task.budget.device, start.machine.alignment());
  if (!sizes) return fail(sizes.error());
  std::map<std::int64_t, ProfileSource> sources;
  RoundsWorkload workload(*sizes, [&](std::int64_t sub_batch) -> Result<Program> {
    auto timed = profile_in_rounds(job, sub_batch, start.machine, task,
                                   {cache, spec.cache.reprofile, {}}, observer);
    if (!timed) return fail(timed.error());
    sources[sub_batch] = timed->source;
    return std::move(timed->program);
  });
  const auto own = workload.program(workload.sub_batch());
  if (!own) return fail(own.error());
  const Profile subject{job.fingerprint(), **own, start.machine};
  PlanRequest request = request_of(subject, spec, task.budget, observer);
  request.options.may.sub_batch = true;
  request.workload = &workload;
  auto plan = obtain_plan(planner, request, cache, spec.cache.replan, observer);
  if (!plan) return fail(plan.error());
  start.plan = std::move(*plan);
  start.chose_sub_batch = true;
  if (const Program* whole = workload.known(job.program().batch)) {
    start.predicted_whole = unlimited_time(job, *whole, start.machine);
  }
  const std::int64_t chosen = start.plan.planned.sub_batch();
  const auto program = workload.program(chosen);
  if (!program) return fail(program.error());
  start.profile = sources.at(chosen);
  if (auto rebuilt = job.set_rounds(chosen); !rebuilt) return rebuilt;
  job.program() = **program;
  return {};
}

/// The same in the rounds that the job is in. `all`, `choice`: as above.
Result<void> plan_stated_rounds(Job& job, const TrainingSpec& spec, const ProfilingTask& task,
                                Planner& planner, const std::optional<Machine>& all,
                                const std::optional<AlgorithmChoice>& choice, const Cache& cache,
                                Preparation& start, Observer& observer) {
  // A plan file has the times that its plan was made with.
  if (spec.plan.empty() || !spec.profile.empty()) {
    const auto profile = obtain_profile(job, start.machine, task,
                                        {cache, spec.cache.reprofile, spec.profile}, observer);
    if (!profile) return fail(profile.error());
    start.profile = *profile;
  } else {
    start.profile.from = "plan";
  }
  if (!spec.plan.empty()) {
    auto used = use_plan_file(job, spec, all, choice, start);
    if (used && start.profile.from == "plan") {
      job.program() = start.plan.profile->program;
      start.profile.how.fake = start.plan.profile->fake;
    }
    return used;
  }
  auto plan =
      training_plan(job, spec, task.budget, start.machine, planner, choice, cache, observer);
  if (!plan) return fail(plan.error());
  start.plan = std::move(*plan);
  return {};
}

}  // namespace

void predict_again(const Job& job, Preparation& start) {
  Lowered& lowered = start.plan.planned.lowered;
  lowered.iteration_time =
      time_plan(job.program(), lowered.plan, with_turns_on_buses(start.machine)).iteration_time;
  start.predicted_unlimited = unlimited_time(job, job.program(), start.machine);
}

double Preparation::predicted_overhead() const {
  return overhead(lowered().iteration_time, predicted_unlimited);
}

ParallelProgram parallel_program(const Job& job) {
  return {job.program(), job.parallel()->whole.program, job.parallel()->replication,
          job.spec().accumulation == Accumulation::naive};
}

Result<ParallelPlan> parallel_plan(const Job& job, const Plan& part, const Machine& machine,
                                   const Budget& budget) {
  return parallel_plan(parallel_program(job), part, machine, budget);
}

namespace {

/// The plan of one device becomes that of all, which a file has already.
Result<Preparation> on_all_devices(const Job& job, Preparation start, const Machine& all) {
  if (!start.parallel) {
    auto parallel = parallel_plan(job, start.lowered().plan, all, start.budget);
    if (!parallel) return fail(parallel.error());
    start.parallel = std::move(*parallel);
  }
  start.gap.unknown = kNoGapOfSeveral;
  return start;
}

/// Its file as it was measured.
Machine with_disk(Machine machine, const DiskChange& disk) {
  const auto file = static_cast<SpaceId>(std::ssize(machine.spaces)) - 1;  // files come last
  for (Link& link : machine.links) {
    if (link.to == file) link.speed.bytes_per_second = disk.write.measured;
    if (link.from == file) link.speed.bytes_per_second = disk.read.measured;
  }
  return machine;
}

}  // namespace

bool hides_copies(const Job& job, const DiskChange& disk, const Preparation& start) {
  constexpr double kMost = 0.01;
  const Nanos time =
      time_plan(job.program(), start.lowered().plan, with_disk(start.machine, disk)).iteration_time;
  return to_seconds(time) <= (1 + kMost) * to_seconds(start.predicted_unlimited);
}

Result<void> plan_for_disk(const Job& job, const TrainingSpec& spec, const DiskChange& disk,
                           Planner& planner, Preparation& start, Observer& observer) {
  Machine machine = with_disk(start.machine, disk);
  const Cache cache(spec.cache, observer);
  auto plan =
      training_plan(job, spec, start.budget, machine, planner,
                    chosen_algorithms(job.program(), start.lowered().plan), cache, observer);
  if (!plan) return fail(plan.error());
  start.plan = std::move(*plan);
  start.machine = std::move(machine);
  start.predicted_unlimited = unlimited_time(job, job.program(), start.machine);
  start.gap = {};
  start.gap.unknown = "planned again for the disk as it was measured";
  return {};
}

namespace {

/// What its plan's times are of. A plan file may have been predicted from another measurement than
/// today's.
struct PlannedFor {
  const Program& program;
  const Machine& machine;
};
PlannedFor planned_for(const Job& job, const Preparation& start) {
  const auto& file = start.plan.profile;
  if (file) return {file->program, file->machine};
  return {job.program(), start.machine};
}

/// Of a plan for one device.
Result<void> prove_gap(const Job& job, const TrainingSpec& spec, Preparation& start,
                       Observer& observer) {
  observer.update(0, "how far the plan may be from the best");
  const auto [program, machine] = planned_for(job, start);
  auto gap = proven_gap(program, machine, start.lowered(), start.predicted_unlimited, start.budget,
                        {gap_time_limit(spec.planner), observer.stop(),
                         spec.budget.memory.given() ? limited_stop(spec, observer) : Stop{}});
  if (!gap) return fail(gap.error());
  start.gap = std::move(*gap);
  return {};
}

}  // namespace

Result<Preparation> prepare(Job& job, const TrainingSpec& spec, const Budget& budget,
                            const std::vector<std::int64_t>& offered, Planner& planner,
                            Observer& observer) {
  Preparation start;
  start.budget = budget;
  const auto machine = device_machine(job, budget, spec.cache, observer);
  if (!machine) return fail(machine.error());
  start.machine = *machine;
  Budget of_one = budget;
  std::optional<Machine> all;
  if (job.parallel() != nullptr) {
    all = machine_of_devices(*machine, job.spec().devices);
    start.machine = one_of_devices(*all);
    if (spec.plan.empty()) {
      const auto part = budget_of_part(budget, parallel_program(job), *all, !offered.empty());
      if (!part) return fail(part.error());
      of_one = *part;
    }
  }
  // Of a batch that is too large for a tensor there is none at once.
  const Bytes alignment = machine->alignment();
  start.unlimited_peak = whole_batch_peak(rounds_of(job), alignment)
                             .value_or(unlimited_peak(job.program(), alignment));
  // What a checkpoint cannot go on from is said before anything is measured.
  std::optional<AlgorithmChoice> choice;
  if (!spec.resume.empty()) {
    auto loaded = load_checkpoint(job, spec.resume);
    if (!loaded) return fail(loaded.error());
    const auto saved = saved_choice(job, loaded->checkpoint(), spec.resume);
    if (!saved) return fail(saved.error());
    start.checkpoint = std::move(*loaded);
    choice = *saved;
  }
  const Cache cache(spec.cache, observer);
  const bool chooses = chooses_algorithms(spec.planner.name);
  ProfilingTask task{kProfileIterations, plans_all_algorithms(job.spec(), chooses), of_one};
  if (spec.budget.memory.given()) task.memory = memory_of(spec.budget.memory).value_or(0);
  const auto planned =
      offered.empty()
          ? plan_stated_rounds(job, spec, task, planner, all, choice, cache, start, observer)
          : choose_rounds(job, spec, task, offered, planner, cache, start, observer);
  if (!planned) {
    if (!all || !spec.plan.empty()) return fail(planned.error());
    return fail(of_all_devices(planned.error(), budget, of_one, parallel_program(job), *all));
  }

  start.predicted_unlimited =
      unlimited_time(job, planned_for(job, start).program, planned_for(job, start).machine);
  start.fastest_unlimited = unlimited_time(
      planned_for(job, start).program, planned_for(job, start).machine, AlgorithmPolicy::fastest);
  if (start.predicted_whole) {
    start.predicted_unlimited = std::min(start.predicted_unlimited, *start.predicted_whole);
  }
  if (all) return on_all_devices(job, std::move(start), *all);
  if (auto proven = prove_gap(job, spec, start, observer); !proven) return fail(proven.error());
  return start;
}

}  // namespace tidepool
