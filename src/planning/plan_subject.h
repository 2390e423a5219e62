// The one way from a subject to a proved plan: which sizes are offered and which algorithms, the
// share of one of several devices, the cache, a plan file, the proof, the optimality gap.
#pragma once

#include <optional>

#include "base/observer.h"
#include "planning/algorithm_choice.h"
#include "planning/obtain_plan.h"
#include "planning/proven_gap.h"
#include "planning/saved_plan.h"
#include "planning/subject.h"

namespace tidepool {

/// What is asked for, beside the budget.
struct PlanTask {
  PlannerSpec planner;
  bool replan = false;          ///< a plan of the cache is no answer
  std::int32_t host_cores = 1;  ///< of several devices: that add gradients, for the simulated time
  /// Ends the search where it is not the observer alone that does; it asks that too.
  std::optional<Stop> stop{};
  std::optional<AlgorithmChoice> choice{};  ///< what every op has to run; none: the planner decides
  const SavedPlan* saved = nullptr;         ///< runs instead of what a planner would find
  bool tried = false;  ///< a plan that a training has tried is preferred, where one is kept
};

struct SubjectPlan {
  Budget budget;                           ///< of each device
  Profile profile;                         ///< of the plan of one device: its rounds, its times
  ObtainedPlan obtained;                   ///< of one device
  std::optional<ParallelPlan> parallel{};  ///< of all devices, where there are several
  Nanos unlimited{};                       ///< without a budget: what its overhead is over
  /// The same with the fastest algorithm of each op, where those that plans may not choose were
  /// measured too.
  Nanos fastest_unlimited{};
  RoundsOfPlan rounds{};
  ProvenGap gap{};
  bool stopped = false;  ///< the search was: the best plan until then

  [[nodiscard]] const Lowered& lowered() const { return obtained.planned.lowered; }
  /// What runs.
  [[nodiscard]] const Plan& running() const { return parallel ? parallel->plan : lowered().plan; }
  /// Of one device.
  [[nodiscard]] double overhead() const;
};

/// What a file says of the plan of one device. Without a limit its budget is what the plan takes.
PlanFile plan_file(const SubjectPlan& plan);

/// What is asked for, as bytes of each device. Where it cannot be met the error names what is
/// enough for this planner, on the device that needs most.
Result<Budget> budget_for(const Subject& subject, const BudgetSpec& spec,
                          const std::string& planner);

/// What is left of that for the plan of one device; where there is one only, all of it.
Result<Budget> budget_of_one(const Subject& subject, const Budget& budget);

/// Plans `profile` as the task says, in the rounds of `workload` or, where that is null, in its
/// own.
Result<ObtainedPlan> plan_profile(Planner& planner, const Profile& profile, Workload* workload,
                                  const PlanTerms& terms, const PlanTask& task,
                                  const Budget& budget, const Cache& cache, Observer& observer);

/// For trainings that ask for the same: the plan that was fastest of those that this one tried, in
/// the rounds of `profile`, which a planner chose where that is what the terms say. Of whatever
/// planner; its algorithms are among those of `profile`. Of a training that had tried no more than
/// some of them it does not take the place of one that did. Whether it is kept.
bool keep_tried(const Profile& profile, const PlanTerms& terms, const PlanTask& task,
                const Budget& budget, const Planned& planned, const TrialFigures& figures,
                const Cache& cache);

/// Proved. Of several devices the subject is in the plan's rounds afterwards. `budget` is of each
/// device. A search that is stopped has a plan all the same: the best until then.
Result<SubjectPlan> plan_subject(Subject& subject, const Budget& budget, const PlanTask& task,
                                 const Cache& cache, Observer& observer);

/// Sets the gap, by linear programs that take up to the planner's time limit once more.
Result<void> prove_gap(const PlanTask& task, SubjectPlan& plan, Observer& observer);

}  // namespace tidepool
