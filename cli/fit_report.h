// What tidepool fit prints.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/time.h"
#include "cost/machine.h"
#include "planning/fit.h"

namespace tidepool::cli {

/// What was searched for, and what came of it: at the end or where it was interrupted.
struct FitReport {
  std::string model;
  std::string machine;
  std::string planner;
  double resolution = 0;
  Bytes budget = 0;
  /// The largest batch that the budget can train at all. None: not known yet.
  std::optional<LargestPossible> possible{};
  bool all_samples = false;               ///< the most there can be are those of the data
  std::optional<std::size_t> measured{};  ///< profiles; none of a preset
  std::optional<Machine> links{};         ///< of this device; none of a preset, or not known yet
  FitFound found{};
  Nanos took{};
};

/// On stdout, an object with `json`. Returns the exit code.
int print_fit(const FitReport& fit, bool json);

}  // namespace tidepool::cli
