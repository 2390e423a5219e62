// From a planner to a proved plan: `make_plan` lowers what the planner proposes, names it, keeps it
// inside every budget and proves it.
#pragma once

#include "planning/plan_once.h"

namespace tidepool {

/// Runs the planner, lowers what it chose, of whatever sub-batch and algorithms, and proves the
/// result with `check`. The machine's own memory limits the budget too, see `within_memory`.
/// Without a limit on the device nothing moves where the planner's `keeps_without_limit` says so,
/// as long as the machine's memory is enough: the one place for that rule.
Result<Planned> make_plan(Planner& planner, Workload& workload, const Machine& machine,
                          const Budget& wanted, const PlannerOptions& options);

}  // namespace tidepool
