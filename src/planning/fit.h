// The largest batch that fits a budget, and the one with the most samples per second: a search over
// batches, each of which is a program of its own to plan.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cost/profile.h"
#include "planners/planner.h"

namespace tidepool {

/// One batch that was tried.
struct FitTrial {
  std::int64_t batch = 0;
  /// By what the planner decides. The streaming schedule, which takes a plan's place where nothing
  /// of the planner's fits, does not count.
  bool fits = false;
  bool streams = false;    ///< the streaming schedule is all that fits
  bool estimated = false;  ///< op times lie between those of measured batches
  Error why_not;           ///< it does not fit, by the planner where it says
  Nanos iteration{};       ///< the rest where it fits
  Nanos unlimited{};       ///< without a budget, by the algorithms that the planner may choose
  Bytes footprint = 0;
  Bytes host = 0;  ///< that its plan takes
  Nanos plan_time{};

  /// 0 where it does not fit.
  [[nodiscard]] double samples_per_s() const;
};

/// Tries a batch. `estimate`: times may be estimated. An error ends the search.
using TryBatch = std::function<Result<FitTrial>(std::int64_t batch, bool estimate)>;

struct FitFound {
  std::vector<FitTrial> trials;      ///< by batch
  std::optional<FitTrial> largest;   ///< none: not even batch 1 fits, or it ended before that
  std::optional<FitTrial> fastest;   ///< most samples per second
  bool stopped = false;              ///< by `stop`: larger or faster ones may exist
  std::optional<Error> ended_early;  ///< why the search ended where a larger batch was to be tried
};

struct FitOptions {
  std::int64_t most = std::int64_t{1} << 20;  ///< no larger batch is tried
  /// How close, as a share, the largest batch that fits has to be to one that does not; 0: next to
  /// it.
  double resolution = 0;
  /// What is known then is the result.
  Stop stop{};
  /// Told after each trial what is known by then; may be empty.
  std::function<void(const FitFound&)> known{};
};

/// Planners are not monotonic: a larger batch may fit where a smaller one does not. So the batch is
/// doubled until two in a row do not fit, the place in between is bisected, and some batches a
/// little larger than the one found are tried, from which it goes on where one fits. The fastest is
/// looked for among all that were tried, and then around the best of them. Fails only where the
/// first batch could not be tried.
Result<FitFound> find_fit(const TryBatch& try_batch, const FitOptions& options,
                          ProgressSink& progress);

/// Plans a profile's program: a trial that fits where `planner` has a plan of its own.
Result<FitTrial> try_plan(const Profile& profile, const Budget& budget, const std::string& planner,
                          const PlannerOptions& options);

using ProgramOfBatch = std::function<Result<Program>(std::int64_t batch)>;
/// Why no larger batch is possible.
enum class BatchLimit : std::uint8_t {
  budget,  ///< not even the streaming schedule fits
  most,    ///< it is the most that was asked for
  program  ///< its program cannot be made: a tensor has too many elements
};
struct LargestPossible {
  std::int64_t batch = 0;
  BatchLimit limit = BatchLimit::budget;
  std::string refused{};  ///< why the next batch's program cannot be made, where that is the limit
};
/// The largest batch up to `most` with which the budget can be met at all (`smallest_budget`): no
/// planner has a plan above it, and the streaming schedule one up to it. `infeasible`, with the
/// smallest budget of batch 1, where there is none; `interrupted` where it was stopped.
Result<LargestPossible> largest_possible(const ProgramOfBatch& program, Bytes budget,
                                         Bytes alignment, std::int64_t most, const Stop& stop = {});

/// The largest batches that take no search, with least workspaces; 0: not even one sample.
struct FitUnplanned {
  std::int64_t kept = 0;       ///< every tensor stays on the device
  std::int64_t streaming = 0;  ///< only the running op's do, and the host holds the others
};
/// Up to `most`, inside the budget of the host too. `interrupted` where it was stopped.
Result<FitUnplanned> fit_unplanned(const ProgramOfBatch& program, const Budget& budget,
                                   Bytes alignment, std::int64_t most, const Stop& stop = {});

}  // namespace tidepool
