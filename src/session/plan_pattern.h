// A plan for one iteration of a Session, proved.
#pragma once

#include "base/stop.h"
#include "cost/machine.h"
#include "planning/plan_subject.h"

namespace tidepool {

struct PatternPlan {
  Plan plan;
  Nanos predicted{};  ///< of an iteration
  Nanos unlimited{};  ///< the same without a budget
  PlanFile file{};    ///< for pictures
};

/// Blocks the caller until it is made, or the planner's time is over.
Result<PatternPlan> plan_pattern(const Program& program, const Machine& machine,
                                 const Budget& budget, const PlannerSpec& planner,
                                 std::uint64_t seed, const Stop& stop);

}  // namespace tidepool
