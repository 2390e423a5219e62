// Plans of other planners for what a training runs, to be tried beside its own.
#pragma once

#include <vector>

#include "base/observer.h"
#include "planners/registry.h"
#include "planning/algorithm_choice.h"

namespace tidepool {

/// What all of them are for.
struct RivalTask {
  const AlgorithmChoice& choice;  ///< what every op has to run
  const Program& program;
  const Machine& machine;
  Budget budget;
  PlannerOptions options;  ///< its time limit is for all of them together
};

/// The planner's plan; none where it has none in this budget, or was stopped.
Result<std::optional<Planned>> plan_of_rival(Planner& planner, const RivalTask& task);

/// One of each planner that has one in its part of the time, but `own`.
Result<std::vector<Planned>> rival_plans(std::string_view own, const RivalTask& task,
                                         Observer& observer);

}  // namespace tidepool
