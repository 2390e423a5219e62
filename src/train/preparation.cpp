#include "train/preparation.h"

#include <fmt/format.h>

#include "lower/overhead.h"
#include "train/link_speed.h"

namespace tidepool {
namespace {

/// The plan to train with. `choice`: what every op has to run; none: what the planner picks.
Result<ObtainedPlan> training_plan(const Job& job, const TrainingSpec& spec, const Budget& budget,
                                   const Machine& machine, Planner& planner,
                                   const std::optional<AlgorithmChoice>& choice, const Cache& cache,
                                   Observer& observer) {
  const Program& program = job.program();
  if (!spec.plan.empty()) {
    auto plan = plan_from_file(spec.plan, {job.fingerprint(), program, machine}, budget);
    if (plan && choice && chosen_algorithms(program, plan->planned.lowered.plan) != *choice) {
      return fail(ErrorCode::bad_input,
                  fmt::format("{}: runs other algorithms than {} was trained with; going on would "
                              "not be bit for bit the same training",
                              spec.plan, spec.resume));
    }
    return plan;
  }
  const Profile subject{job.fingerprint(), choice ? restrict_to(*choice, program) : program,
                        machine};
  PlanRequest request{subject, budget, spec.planner.name, planner_options(spec.job, spec.planner)};
  request.options.stop = observer.stop();
  request.options.progress = &observer;
  auto plan = obtain_plan(planner, request, cache, spec.cache.replan, observer);
  if (!plan) return fail(plan.error());
  if (choice) widen(*choice, plan->planned.lowered);
  return plan;
}

}  // namespace

double Preparation::predicted_overhead() const {
  return overhead(lowered().iteration_time, predicted_unlimited);
}

namespace {

ParallelProgram parallel_program(const Job& job) {
  return {job.program(), job.parallel()->whole.program, job.parallel()->replication,
          job.spec().accumulation == Accumulation::naive};
}

}  // namespace

Result<ParallelPlan> parallel_plan(const Job& job, const Plan& part, const Machine& machine,
                                   const Budget& budget) {
  return parallel_plan(parallel_program(job), part, machine, budget);
}

Result<Preparation> prepare(Job& job, const TrainingSpec& spec, const Budget& budget,
                            Planner& planner, Observer& observer) {
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
    const auto part = budget_of_part(budget, parallel_program(job), *all);
    if (!part) return fail(part.error());
    of_one = *part;
  }
  start.unlimited_peak = unlimited_peak(job.program(), machine->alignment());
  // What a checkpoint cannot go on from is said before anything is measured.
  std::optional<AlgorithmChoice> choice;
  if (!spec.resume.empty()) {
    auto loaded = load_checkpoint(job, spec.resume);
    if (!loaded) return fail(loaded.error());
    const auto saved = saved_choice(job, *loaded, spec.resume);
    if (!saved) return fail(saved.error());
    start.checkpoint = std::move(*loaded);
    choice = *saved;
  }
  const Cache cache(spec.cache, observer);
  const bool all_algorithms = algorithms_of(job.spec()) == AlgorithmPolicy::fastest;
  const auto profile =
      obtain_profile(job, start.machine, {kProfileIterations, all_algorithms, of_one},
                     {cache, spec.cache.reprofile, spec.profile}, observer);
  if (!profile) return fail(profile.error());
  start.profile = *profile;
  auto plan = training_plan(job, spec, of_one, start.machine, planner, choice, cache, observer);
  if (!plan) return fail(plan.error());
  start.plan = std::move(*plan);
  if (all) {
    auto parallel = parallel_plan(job, start.lowered().plan, *all, budget);
    if (!parallel) return fail(parallel.error());
    start.parallel = std::move(*parallel);
  }

  if (!all) observer.update(0, "how far the plan may be from the best");
  // A plan file may have been predicted from another measurement than today's.
  const auto& planned_for = start.plan.profile;
  const Program& program = planned_for ? planned_for->program : job.program();
  const Machine& on = planned_for ? planned_for->machine : start.machine;
  start.predicted_unlimited =
      unlimited_time(program, on, chosen_algorithms(program, start.lowered().plan));
  if (all) {
    start.gap.unknown = kNoGapOfSeveral;
    return start;
  }
  const FluidOptions solving{gap_time_limit(spec.planner), observer.stop()};
  const auto gap = proven_gap(program, on, start.lowered(), budget.device, solving);
  if (!gap) return fail(gap.error());
  start.gap = *gap;
  return start;
}

}  // namespace tidepool
