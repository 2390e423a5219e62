// Observation: what a plan's instructions took on a device, as plain data.
#pragma once

#include <vector>

#include "base/time.h"
#include "schedule/strategy.h"

namespace tidepool {

/// Measured times of the steady state, one per instruction of Plan::steady. Made by `observe`
/// (runtime/observe.h); planners that correct themselves take it with their options.
struct Observation {
  /// Of what no clock was read for: copies, host ops, ops that a guard skipped every time.
  static constexpr Nanos kNotMeasured{-1};

  std::vector<Nanos> durations;  ///< from its start to its end
  std::vector<Nanos> stalls;     ///< its stream was idle so long before it
  Strategy strategy{};           ///< of which the plan was made
};

}  // namespace tidepool
