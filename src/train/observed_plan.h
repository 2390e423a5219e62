// ObservedPlan: a plan and what was seen when it ran.
#pragma once

#include "schedule/observation.h"
#include "schedule/schedule.h"

namespace tidepool {

/// A plan that ran. Both must outlive it.
struct ObservedPlan {
  const Plan& plan;
  const Observation& observation;
};

}  // namespace tidepool
