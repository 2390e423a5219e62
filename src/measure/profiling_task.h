// What is asked for of a measurement.
#pragma once

#include "lower/budget.h"

namespace tidepool {

/// Iterations whose medians become a profile, where the user does not say. On a busy machine there
/// are more.
inline constexpr int kProfileIterations = 3;

struct ProfilingTask {
  int iterations = kProfileIterations;
  bool all_algorithms = false;
  /// Measuring uses no more: where not everything can be kept, tensors are swapped on demand.
  Budget budget = no_limit();
  /// Only the times are wanted: intermediate values that do not fit the budget are made up, not
  /// swapped (runtime/reactive.h, Note [Made-up values]). Without a limit the smallest arena that
  /// every measured algorithm fits is used.
  bool fake = false;
  /// Of the RAM that the whole process may take, with a file behind it; 0: as much as there is.
  Bytes memory = 0;
};

}  // namespace tidepool
