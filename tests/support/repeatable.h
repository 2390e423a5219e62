// A planner's search with a result that repeats, and soon there.
#pragma once

#include <string_view>

#include "planners/planner_context.h"

namespace tidepool::testing {

/// Ends after so many evaluations, by no clock.
inline PlannerOptions repeatable(std::uint64_t seed, std::int64_t evaluations,
                                 std::string_view planner) {
  PlannerOptions options;
  options.seed = seed;
  // An episode of a Q-network trains it, too.
  options.evaluation_limit = planner.starts_with("dqn") ? evaluations / 3 : evaluations;
  options.values.set("dqn_width", 8);  // a small network learns too, in less time
  options.values.set("dqn_batch", 4);
  return options;
}

}  // namespace tidepool::testing
