// Links as fast as the copies of plans that ran.
#pragma once

#include <span>

#include "cost/machine.h"
#include "train/observed_plan.h"

namespace tidepool {

/// Gives each link the latency and the speed that explain best what its copies took in all these
/// plans: least squares, each copy weighted by what it was said to take, so that they take in all
/// what was measured. Links whose copies are all of one size become slower or faster as a whole;
/// those without copies stay.
void follow_links(std::span<const ObservedPlan> seen, Machine& machine);

}  // namespace tidepool
