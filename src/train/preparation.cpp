#include "train/preparation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cost/turns_on_buses.h"
#include "lower/overhead.h"
#include "lower/time_plan.h"
#include "measure/link_speed.h"
#include "measure/measured_subject.h"
#include "planners/registry.h"

namespace tidepool {
namespace {

/// What plans of this training are compared with.
Nanos unlimited_time(const Job& job, const Program& program, const Machine& machine) {
  return unlimited_time(program, machine, plan_terms(job.spec()).best_algorithms(true));
}

PlanTask task_of(const TrainingSpec& spec, Observer& observer) {
  PlanTask task{spec.planner, spec.cache.replan};
  task.tried = spec.trials;
  if (const MemorySpec& memory = spec.budget.memory; memory.given()) {
    // Planning ends before it takes more than the memory of the whole process.
    task.stop = where_memory_ends(memory_of(memory).value_or(0), observer.stop());
  }
  return task;
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

double Preparation::predicted_overhead() const {
  return overhead(now.value_or(lowered().iteration_time), predicted_unlimited);
}

namespace {

/// Plans are compared with times without a budget that are all by the same: by these of the ops.
void compare_with(const Job& job, const Program& program, const Machine& machine,
                  Preparation& start) {
  start.predicted_unlimited = unlimited_time(job, program, machine);
  if (start.predicted_whole) {
    start.predicted_unlimited = std::min(start.predicted_unlimited, *start.predicted_whole);
  }
  start.fastest_unlimited = unlimited_time(program, machine, AlgorithmPolicy::fastest);
}

/// The whole batch at once did not run: it has changed as what did.
void scale_whole(double factor, Preparation& start) {
  if (!start.predicted_whole) return;
  const auto before = static_cast<double>(start.predicted_whole->count());
  start.predicted_whole = Nanos{std::llround(factor * before)};
}

}  // namespace

void predict_again(const Job& job, double factor, Preparation& start) {
  Lowered& lowered = start.plan.planned.lowered;
  lowered.iteration_time =
      time_plan(job.program(), lowered.plan, with_turns_on_buses(start.machine)).iteration_time;
  scale_whole(factor, start);
  compare_with(job, job.program(), start.machine, start);
}

Result<void> predict_by(const TimeModel& now, const Job& job, const TrainingSpec& spec,
                        Preparation& start, Observer& observer) {
  const Program& program = now.alone();
  const double before = to_seconds(unlimited_time(job, job.program(), start.machine));
  if (before > 0) {
    scale_whole(to_seconds(unlimited_time(job, program, now.machine())) / before, start);
  }
  compare_with(job, program, now.machine(), start);
  Lowered timed = start.lowered();
  timed.iteration_time = now.time(timed.plan);
  start.now = timed.iteration_time;
  observer.update(0, "how far the plan may be from the best, by what was measured");
  const PlanTask task = task_of(spec, observer);
  auto gap =
      proven_gap(program, now.machine(), timed, start.predicted_unlimited, start.budget,
                 {gap_time_limit(task.planner), observer.stop(), task.stop.value_or(Stop{})});
  // Times that were measured are no proof that one of the two is wrong, and no reason to end.
  if (!gap && gap.error().code == ErrorCode::check_failed) {
    start.gap = {};
    start.gap.unknown = "the plan was measured to be faster than the bound by the times measured";
    return {};
  }
  if (!gap) return fail(gap.error());
  start.gap = std::move(*gap);
  return {};
}

Result<ParallelPlan> parallel_plan(const Job& job, const Plan& part, const Machine& machine,
                                   const Budget& budget) {
  const nn::DataParallel& all = *job.parallel();
  return parallel_plan({job.program(), all.whole.program, all.replication,
                        job.spec().accumulation == Accumulation::naive},
                       part, machine, budget);
}

bool hides_copies(const Job& job, const DiskChange& disk, const Preparation& start) {
  constexpr double kMost = 0.01;
  const Nanos time =
      time_plan(job.program(), start.lowered().plan, with_disk(start.machine, disk)).iteration_time;
  // By the same times of ops, which are not those of trials.
  const Nanos unlimited =
      start.now ? unlimited_time(job, job.program(), start.machine) : start.predicted_unlimited;
  return to_seconds(time) <= (1 + kMost) * to_seconds(unlimited);
}

Result<void> plan_for_disk(const Job& job, const TrainingSpec& spec, const DiskChange& disk,
                           Planner& planner, Preparation& start, Observer& observer) {
  Machine machine = with_disk(start.machine, disk);
  PlanTask task = task_of(spec, observer);
  task.choice = chosen_algorithms(job.program(), start.lowered().plan);
  auto plan = plan_profile(planner, {job.fingerprint(), job.program(), machine}, nullptr,
                           plan_terms(job.spec()), task, start.budget, Cache(spec.cache, observer),
                           observer);
  if (!plan) return fail(plan.error());
  start.plan = std::move(*plan);
  start.machine = std::move(machine);
  start.now.reset();
  compare_with(job, job.program(), start.machine, start);
  start.gap = {};
  start.gap.unknown = "planned again for the disk as it was measured";
  return {};
}

namespace {

/// The checkpoint that the training goes on from, and with it what every op has to run.
Result<void> load_checkpoint_into(const Job& job, const TrainingSpec& spec, PlanTask& task,
                                  Preparation& start) {
  if (spec.resume.empty()) return {};
  auto loaded = load_checkpoint(job, spec.resume);
  if (!loaded) return fail(loaded.error());
  const auto saved = saved_choice(job, loaded->checkpoint(), spec.resume);
  if (!saved) return fail(saved.error());
  start.checkpoint = std::move(*loaded);
  task.choice = *saved;
  return {};
}

/// The times of the subject: of rounds on offer when they are asked for, of the stated ones now. A
/// plan file has the times that its plan was made with.
Result<void> measure_subject(Unprepared& from, const TrainingSpec& spec, const Budget& budget,
                             const Cache& cache, Observer& observer) {
  Subject& subject = from.subject;
  const bool chooses = chooses_algorithms(spec.planner.name);
  ProfilingTask task{kProfileIterations, subject.terms.plans_all_algorithms(chooses), budget};
  if (from.saved == nullptr) {
    const auto of_one = budget_of_one(subject, budget);
    if (!of_one) return fail(of_one.error());
    task.budget = *of_one;
  }
  if (spec.budget.memory.given()) task.memory = memory_of(spec.budget.memory).value_or(0);
  if (!subject.offered.empty()) {
    measure_when_asked(
        from.job, [task](const Program&) -> Result<ProfilingTask> { return task; }, cache,
        spec.cache.reprofile, subject, observer);
    return {};
  }
  if (from.saved != nullptr && spec.profile.empty()) return {};
  return measure_stated(*from.job, task, {cache, spec.cache.reprofile, spec.profile}, subject,
                        observer);
}

/// The job is in the rounds of the plan, with the times that it was made with.
Result<ProfileSource> take_over(const Unprepared& from, const TrainingSpec& spec,
                                const PlanTask& task, const SubjectPlan& made) {
  Job& job = *from.job;
  if (from.saved != nullptr && task.choice &&
      chosen_algorithms(job.program(), made.lowered().plan) != *task.choice) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: runs other algorithms than {} was trained with; going on would "
                            "not be bit for bit the same training",
                            spec.plan, spec.resume));
  }
  if (from.subject.source) return *from.subject.source;
  if (from.saved != nullptr) {
    job.program() = made.profile.program;
    return ProfileSource{"plan", {.fake = made.profile.fake}};
  }
  const std::int64_t chosen = made.profile.program.sub_batch;
  if (auto rebuilt = job.set_rounds(chosen); !rebuilt) return fail(rebuilt.error());
  job.program() = made.profile.program;
  return from.subject.sources->at(chosen);
}

}  // namespace

Result<Preparation> prepare(Unprepared from, const TrainingSpec& spec, const Budget& budget,
                            Observer& observer) {
  Preparation start;
  start.budget = start.asked = budget;
  const auto machine = device_machine(*from.job, budget, spec.cache, observer);
  if (!machine) return fail(machine.error());
  put_on_machine(from.job, *machine, from.subject);
  start.machine = from.subject.profile.machine;
  start.unlimited_peak = from.subject.unlimited_peak();
  PlanTask task = task_of(spec, observer);
  task.saved = from.saved;
  // What a checkpoint cannot go on from is said before anything is measured.
  if (auto loaded = load_checkpoint_into(*from.job, spec, task, start); !loaded) {
    return fail(loaded.error());
  }
  const Cache cache(spec.cache, observer);
  if (auto measured = measure_subject(from, spec, budget, cache, observer); !measured) {
    return fail(measured.error());
  }
  auto made = plan_subject(from.subject, budget, task, cache, observer);
  if (!made) return fail(made.error());
  const auto source = take_over(from, spec, task, *made);
  if (!source) return fail(source.error());
  const auto tried = made->obtained.tried;
  // That of a plan that was tried is known, by what was measured then.
  if (auto proven = tried ? Result<void>() : prove_gap(task, *made, observer); !proven) {
    return fail(proven.error());
  }
  start.profile = *source;
  start.plan = std::move(made->obtained);
  start.parallel = std::move(made->parallel);
  start.gap = std::move(made->gap);
  start.predicted_unlimited = made->unlimited;
  start.fastest_unlimited = made->fastest_unlimited;
  start.chose_sub_batch = made->rounds.chosen;
  start.predicted_whole = made->rounds.whole;
  if (tried) {
    start.now = tried->predicted;
    start.predicted_unlimited = tried->unlimited;
    start.fastest_unlimited = tried->fastest_unlimited;
    start.gap = tried->gap;
  }
  return start;
}

}  // namespace tidepool
