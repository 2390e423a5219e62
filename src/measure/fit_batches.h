// The largest batch of a model that fits a budget, and the fastest one: on a preset by its compute
// model, on this device by measured times.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/time.h"
#include "measure/subject_of.h"
#include "planning/fit.h"

namespace tidepool {

struct FitSpec {
  SubjectSpec subject;  ///< a model
  BudgetSpec budget;    ///< in bytes; where none is given the memory of a preset
  PlannerSpec planner;
  std::int64_t most = std::int64_t{1} << 20;  ///< no larger batch is tried
  double resolution = 0;  ///< a share of the largest batch, to which it is found; 0: to one sample
};

/// What was searched for, and what came of it: at the end or where it was interrupted.
struct FitReport {
  std::string model;
  std::string machine;
  std::string planner;
  double resolution = 0;
  Bytes budget = 0;
  Bytes host_budget = 0;  ///< 0: no limit
  /// The largest batch that the device's bytes can train at all. None: not known yet.
  std::optional<LargestPossible> possible{};
  std::optional<FitUnplanned> unplanned{};  ///< up to that; none: not known yet
  bool all_samples = false;                 ///< the most there can be are those of the data
  std::optional<std::size_t> measured{};    ///< profiles; none of a preset
  std::optional<Machine> links{};           ///< of this device; none of a preset, or not known yet
  FitFound found{};
  Nanos took{};
};

/// Fills in `known` as it goes, so that an interruption loses nothing; not while a batch is
/// measured, when another thread may print it. `searches` hears how far the search is, `observer`
/// of the work for one batch. Fails with `interrupted` where `stop` came before a batch was found.
Result<void> fit_batches(const FitSpec& spec, const Stop& stop, FitReport& known,
                         ProgressSink& searches, Observer& observer);

}  // namespace tidepool
