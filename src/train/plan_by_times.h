// A plan by the times of now: what a planner makes of what plans took that ran.
#pragma once

#include <optional>

#include "planners/registry.h"
#include "planning/make_plan.h"
#include "train/time_model.h"

namespace tidepool {

/// For a job whose ops run what they ran in `leader`.
struct TimesTask {
  const Program& program;  ///< of the profile
  const TimeModel& now;
  const Plan& leader;  ///< the fastest plan that ran
  Budget budget;
  PlannerOptions options;
};

/// None where the planner has no plan in this budget, was stopped, or its plan is slower by these
/// times than the leader, by more than they may be off.
Result<std::optional<Planned>> plan_by_times(Planner& planner, const TimesTask& task);

}  // namespace tidepool
