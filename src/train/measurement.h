// How a profile is measured: what is asked for, and what was done.
#pragma once

#include "base/json_fwd.h"
#include "lower/lower.h"
#include "train/budget.h"

namespace tidepool {

/// Iterations whose medians become a profile, where the user does not say.
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

/// How a profile was measured, or has to be at least.
struct Measurement {
  int iterations = 0;
  bool all_algorithms = false;  ///< else only the least-workspace ones
  /// Swapping on demand inside this budget, because not everything could be kept; 0: all was kept.
  Bytes reactive_budget = 0;
  int unmeasured = 0;    ///< algorithms that did not fit that budget
  Bytes arena_peak = 0;  ///< highest device byte used
  bool fake = false;     ///< inside `reactive_budget` with made-up values: times only

  [[nodiscard]] bool serves(const Measurement& asked) const;
};

Json to_json(const Measurement& how);
Measurement measurement_from_json(const JsonCursor& json);

}  // namespace tidepool
