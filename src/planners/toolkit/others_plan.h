// OthersPlan: what a planner that begins with the plans of others asks one of them for.
#pragma once

#include <optional>
#include <vector>

#include "planners/registry.h"

namespace tidepool {

/// A planner's plan, of whatever sub-batch.
struct OthersPlan {
  const PlannerInfo* planner = nullptr;
  std::vector<std::int32_t> algorithms;  ///< AutoSwap's, one per op; empty: the policy's
  PlannerOptions options;
  std::optional<PlannerContext> context;
  Stop give_up;  ///< of a plan that somebody has another for: asked while addresses are looked for
  std::optional<Lowered> plan;
  /// What the planner chose, where the plan is not of that: addresses did not fit, or time was up.
  std::optional<Strategy> without_plan;
  Error error;

  /// Runs the planner in its context and lowers what it chose.
  void make(bool may_stream);
};

}  // namespace tidepool
