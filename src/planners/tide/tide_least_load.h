// The least load that swapping gets by with.
#pragma once

#include "planners/tide/tide_load.h"

namespace tidepool {

/// A load and the swaps that need no more.
struct TideLeastLoad {
  Bytes bytes = 0;
  Strategy strategy;
};

/// The least load limit under which the search stalls for at most `tolerance` of the compute time,
/// by bisection between 0 and a load that is known to do, which is returned where nothing less is
/// found: the peak and nothing swapped, or better. No bound is asked: what it finds is compared
/// with those, and is to show where they are wrong.
TideLeastLoad tide_least_load(const Lowering& lowering, const std::vector<std::int32_t>& algorithms,
                              TideLeastLoad known, double tolerance,
                              const LoadSearchOptions& options);

}  // namespace tidepool
