// How a profile was measured, and where the one that is used comes from.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/json_fwd.h"

namespace tidepool {

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

/// Which profile was used.
struct ProfileSource {
  std::string from;  ///< "file", "plan" (of a plan file), "cache" or "measured"
  Measurement how;   ///< of a file only whether it is fake is known
};

Json to_json(const Measurement& how);
Measurement measurement_from_json(const JsonCursor& json);

}  // namespace tidepool
