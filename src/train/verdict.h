// Which of several plans counts as the fastest, by what they took in turn and what was predicted.
#pragma once

#include <cstddef>
#include <span>

#include "base/time.h"

namespace tidepool {

struct RanPlan {
  Nanos predicted{};             ///< an iteration, of all plans by the same times
  std::span<const Nanos> times;  ///< of its iterations; empty: it did not run
};

/// The plan of the least median. Where others are slower by no more than medians of times spread so
/// far may differ by chance, as on a machine whose load changes, the one of these that is predicted
/// to be fastest. At least one plan ran.
std::size_t verdict(std::span<const RanPlan> plans);

}  // namespace tidepool
