// Observation: what a plan's instructions took on a device, as plain data.
#pragma once

#include <vector>

#include "schedule/lateness.h"
#include "schedule/strategy.h"

namespace tidepool {

/// Measured times of the steady state, one per instruction of Plan::steady. Made by `observe`
/// (runtime/observe.h); planners that correct themselves take it with their options.
struct Observation {
  /// Which part of an op's time copies ran beside it.
  struct Beside {
    double out = 0;  ///< away from the device
    double in = 0;
  };
  /// Of a stream: sums over what began, and how many that were.
  struct Begun {
    Lateness late{};
    std::int64_t next = 0;
    std::int64_t woken = 0;
  };
  /// Of what no clock was read for: host ops, and what a guard skipped every time.
  static constexpr Nanos kNotMeasured{-1};

  std::vector<Nanos> durations;  ///< from its start to its end
  std::vector<Nanos> stalls;     ///< its stream was idle so long before it
  std::vector<Beside> beside;    ///< of ops; of copies 0
  std::vector<Begun> begun{};    ///< by stream
  Strategy strategy{};           ///< of which the plan was made
};

}  // namespace tidepool
