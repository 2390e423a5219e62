// place_in_order (pack.h) for holds: the same packing, without a look at everything placed before.
#pragma once

#include "pack/pack.h"

namespace tidepool {

/// The problem has holds.
Packing place_holds_in_order(const PackProblem& problem, std::span<const std::int32_t> order,
                             bool choose_smallest_hole);

}  // namespace tidepool
