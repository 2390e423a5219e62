#pragma once

#include "planners/planner.h"

namespace tidepool {

/// Keeps everything: training without a budget, and the base every other planner is compared with.
/// Infeasible when the packed tensors exceed the budget.
std::unique_ptr<Planner> make_none();

}  // namespace tidepool
