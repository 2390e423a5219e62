// What TFLMS swaps for given parameters; see Note [TFLMS] in tflms.h.
#pragma once

#include <vector>

#include "lower/lower.h"

namespace tidepool {

struct EdgeParameters {
  std::int32_t threshold = 0;  ///< edges over more levels are swapped
  std::int32_t group = 0;      ///< readers within so many levels share a copy in
  std::int32_t ahead = 1;      ///< levels by which a copy in starts earlier than its reader
};

/// Of each op, by what it reads: one more than the highest level of the ops that made it; 0
/// without.
std::vector<std::int32_t> topological_levels(const Program& program);

/// `levels`: topological_levels. One algorithm per op.
Strategy swap_edges(const Program& program, const AccessIndex& index,
                    const std::vector<std::int32_t>& levels, const EdgeParameters& parameters,
                    std::vector<std::int32_t> algorithms);

}  // namespace tidepool
