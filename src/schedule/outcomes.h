// What runs in the gaps of a strategy. Decisions say what a planner chose; where the op behind a
// gap writes over the value, or the host has it already, less runs than the decision's name says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/strategy.h"

namespace tidepool {

enum class Outcome : std::uint8_t {
  keep,
  swap,       ///< copied out, and in again
  drop,       ///< released: the host has the value; copied in
  recompute,  ///< released, and made again
  /// Released, and nothing comes back: the op behind the gap writes over it. Copied out where the
  /// training ends with the value.
  release,
};

const char* to_string(Outcome outcome);

/// Of each gap. `decisions`: of a strategy that can be lowered.
std::vector<Outcome> outcomes(const Program& program, const AccessIndex& index,
                              std::span<const Decision> decisions);

}  // namespace tidepool
