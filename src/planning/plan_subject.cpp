#include "planning/plan_subject.h"

#include "lower/overhead.h"
#include "planners/registry.h"
#include "planning/planner_work.h"

namespace tidepool {

double SubjectPlan::overhead() const {
  return tidepool::overhead(lowered().iteration_time, unlimited);
}

PlanFile plan_file(const SubjectPlan& plan) {
  const Lowered& lowered = plan.lowered();
  const Profile& profile = plan.profile;
  PlanFile file{
      profile.fingerprint,  profile.program,
      profile.machine,      limited(plan.budget) ? plan.budget.device : lowered.plan.device_bytes(),
      plan.budget.host,     lowered.iteration_time,
      lowered.compute_time, lowered.strategy,
      lowered.plan};
  file.fake = profile.fake;
  if (!plan.parallel) file.unlimited = plan.unlimited;
  return file;
}

Result<Budget> budget_for(const Subject& subject, const BudgetSpec& spec,
                          const std::string& planner) {
  auto budget = subject.budget_of(spec);
  if (budget) return budget;
  const Profile& profile = subject.profile;
  if (const auto parallel = subject.parallel_program()) {
    return fail(of_first_device(budget.error(), *parallel, profile.machine.alignment()));
  }
  PlannerSpec spec_of_planner;
  spec_of_planner.name = planner;
  return fail(for_planner(planner, budget.error(), subject,
                          planner_options(subject.terms, spec_of_planner)));
}

Result<Budget> budget_of_one(const Subject& subject, const Budget& budget) {
  const auto parallel = subject.parallel_program();
  if (!parallel) return budget;
  return budget_of_part(budget, *parallel, subject.devices->machine, subject.rounds != nullptr);
}

namespace {

PlanRequest request_of(const Profile& profile, const PlanTerms& terms, const PlanTask& task,
                       const Budget& budget, Workload* workload) {
  PlanRequest request{profile, budget, task.planner.name, planner_options(terms, task.planner)};
  request.options.may.sub_batch = workload != nullptr;
  request.workload = workload;
  request.stated = task.planner.values;
  return request;
}

/// What a training has tried, where it runs what the task says. `chosen`: the rounds of the profile
/// are by a planner's choice.
std::optional<ObtainedPlan> tried_plan(const Profile& profile, bool chosen, const PlanTerms& terms,
                                       const PlanTask& task, const Budget& budget,
                                       const Cache& cache, Observer& observer) {
  FixedWorkload rounds(profile.program);
  auto found = cache.tried(request_of(profile, terms, task, budget, chosen ? &rounds : nullptr));
  if (!found) return std::nullopt;
  auto& [planned, figures] = *found;
  if (task.choice && chosen_algorithms(profile.program, planned.lowered.plan) != *task.choice) {
    return std::nullopt;
  }
  observer.notice(Notice::plan_from_cache, "plan from the cache, the fastest of those tried");
  return ObtainedPlan{std::move(planned), "cache", {}, figures};
}

}  // namespace

bool keep_tried(const Profile& profile, const PlanTerms& terms, const PlanTask& task,
                const Budget& budget, const Planned& planned, const TrialFigures& figures,
                const Cache& cache) {
  FixedWorkload rounds(profile.program);
  const PlanRequest request =
      request_of(profile, terms, task, budget, terms.choose_sub_batch ? &rounds : nullptr);
  if (!figures.finished) {
    const auto before = cache.tried(request);
    if (before && before->second.finished) return false;
  }
  return cache.keep_tried(request, planned, figures);
}

Result<ObtainedPlan> plan_profile(Planner& planner, const Profile& profile, Workload* workload,
                                  const PlanTerms& terms, const PlanTask& task,
                                  const Budget& budget, const Cache& cache, Observer& observer) {
  const bool tried = task.tried && !task.replan;
  if (tried && workload == nullptr) {
    if (auto plan = tried_plan(profile, false, terms, task, budget, cache, observer)) return *plan;
  }
  const Profile* asked = &profile;
  Profile restricted;
  if (task.choice) {
    restricted = profile;
    restricted.program = restrict_to(*task.choice, std::move(restricted.program));
    asked = &restricted;
  }
  PlanRequest request = request_of(*asked, terms, task, budget, workload);
  request.options.stop = task.stop.value_or(observer.stop());
  request.options.give_up = observer.stop();
  request.options.progress = &observer;
  auto plan = obtain_plan(planner, request, cache, task.replan, observer);
  if (plan && task.choice) widen(*task.choice, plan->planned.lowered);
  if (!plan || !tried || workload == nullptr) return plan;
  const auto program = workload->program(plan->planned.sub_batch());
  if (!program) return fail(program.error());
  const Profile chosen{profile.fingerprint, **program, profile.machine, profile.fake};
  auto other = tried_plan(chosen, true, terms, task, budget, cache, observer);
  return other ? std::move(*other) : std::move(plan);
}

namespace {

/// The plan of the file instead of one that is found.
Result<void> use_saved(const Subject& subject, const SavedPlan& saved, SubjectPlan& made) {
  if (subject.devices) {
    auto plan = parallel_plan_of_file(saved, subject, made.budget);
    if (!plan) return fail(plan.error());
    made.obtained = std::move(plan->part);
    made.parallel = std::move(plan->whole);
  } else {
    auto plan = plan_of_file(saved, subject.profile, made.budget);
    if (!plan) return fail(plan.error());
    made.obtained = std::move(*plan);
  }
  made.profile = *made.obtained.profile;
  return {};
}

/// What a planner finds for one device, with `of_one` of the budget.
Result<void> find_plan(const Subject& subject, const PlanTask& task, const Budget& of_one,
                       const Cache& cache, SubjectPlan& made, Observer& observer) {
  const auto work = PlannerWork::make(subject, task.planner.name, of_one);
  if (!work) return fail(work.error());
  auto obtained = plan_profile(work->planner(), work->profile(), work->workload(), subject.terms,
                               task, of_one, cache, observer);
  if (!obtained) return fail(obtained.error());
  auto profile = work->profile(obtained->planned.sub_batch());
  if (!profile) return fail(profile.error());
  made.obtained = std::move(*obtained);
  made.profile = std::move(*profile);
  made.stopped = observer.stop_requested();
  return {};
}

/// Of all devices, from that of one, whose rounds may have been chosen.
Result<void> compose_plan(Subject& subject, const PlanTask& task, SubjectPlan& made) {
  SubjectDevices& devices = *subject.devices;
  const Program& part = made.profile.program;
  if (part.sub_batch != devices.program->whole.sub_batch) {
    auto chosen = devices.in_rounds(part.sub_batch);
    if (!chosen) return fail(chosen.error());
    devices.program = std::move(*chosen);
  }
  const ParallelProgram program{part, devices.program->whole, devices.program->replication,
                                devices.naive};
  auto plan =
      parallel_plan(program, made.lowered().plan, devices.machine, made.budget, task.host_cores);
  if (!plan) return fail(plan.error());
  made.parallel = std::move(*plan);
  return {};
}

}  // namespace

Result<SubjectPlan> plan_subject(Subject& subject, const Budget& budget, const PlanTask& task,
                                 const Cache& cache, Observer& observer) {
  SubjectPlan made;
  made.budget = budget;
  if (task.saved != nullptr) {
    if (auto used = use_saved(subject, *task.saved, made); !used) return fail(used.error());
  } else {
    const auto of_one = budget_of_one(subject, budget);
    if (!of_one) return fail(of_one.error());
    if (auto found = find_plan(subject, task, *of_one, cache, made, observer); !found) {
      Error error = subject.of_whole(found.error());
      const auto parallel = subject.parallel_program();
      if (!parallel) return fail(std::move(error));
      return fail(
          of_all_devices(std::move(error), budget, *of_one, *parallel, subject.devices->machine));
    }
  }
  const PlanTerms& terms = subject.terms;
  const Program& program = made.profile.program;
  const Machine& machine = made.profile.machine;
  made.rounds = subject.rounds_of(program, terms.best_algorithms(true));
  made.rounds.kept_whole = terms.choose_sub_batch && subject.batch_norm && !subject.statistics;
  made.unlimited = unlimited_time(program, machine, terms.best_algorithms(true));
  made.unlimited = std::min(made.unlimited, made.rounds.whole.value_or(made.unlimited));
  made.fastest_unlimited = unlimited_time(program, machine, AlgorithmPolicy::fastest);
  if (!subject.devices) return made;
  made.gap.unknown = kNoGapOfSeveral;
  if (made.parallel) return made;
  if (auto composed = compose_plan(subject, task, made); !composed) return fail(composed.error());
  return made;
}

Result<void> prove_gap(const PlanTask& task, SubjectPlan& plan, Observer& observer) {
  if (plan.parallel) return {};
  if (plan.stopped) {
    plan.gap.unknown = "interrupted";
    return {};
  }
  observer.update(0, "how far the plan may be from the best");
  auto gap = proven_gap(
      plan.profile.program, plan.profile.machine, plan.lowered(), plan.unlimited, plan.budget,
      {gap_time_limit(task.planner), observer.stop(), task.stop.value_or(Stop{})});
  if (!gap) return fail(gap.error());
  plan.gap = std::move(*gap);
  plan.stopped = observer.stop_requested();
  return {};
}

}  // namespace tidepool
