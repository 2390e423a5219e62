// `tide` under a limit on the memory load alone: the search, without addresses. The planner `tide`
// adds those.
#pragma once

#include <optional>

#include "planners/gap_search.h"
#include "planners/timeline_search.h"

namespace tidepool {

struct LoadSearchOptions {
  std::uint64_t seed = 1;
  std::chrono::steady_clock::time_point deadline;
  std::function<bool()> cancelled;  ///< may be empty
  Nanos tolerated_stall{0};         ///< the search ends when no more than this is left
  /// Wants little load where the limit allows more: for addresses. Takes a fifth of the time.
  bool compact = false;
};

/// Searches for swaps under one load limit after another, each from what it is given and has found.
/// First on the timeline without stalls, then on the evaluator.
class LoadSearch {
 public:
  /// `lowering` must outlive the search, which uses its evaluator. One algorithm per op.
  LoadSearch(Lowering& lowering, std::vector<std::int32_t> algorithms);

  /// Adds a start for searches to come.
  void add_seed(AwayGaps away);
  void add_seed(const Strategy& strategy);

  /// False when nothing feasible is known under the limit. Not thread-safe.
  bool run(Bytes load_limit, const LoadSearchOptions& options);

  // Of the last run that returned true:
  [[nodiscard]] const Strategy& strategy() { return gaps_.strategy(found_->away); }
  [[nodiscard]] Nanos iteration_time() const { return found_->iteration_time; }
  [[nodiscard]] Nanos compute_time() const { return found_->compute_time; }

  /// With which the timelines of the search are made: short, which leaves memory to others.
  [[nodiscard]] Nanos lead() const { return lead_; }

  /// Evaluator calls of all runs.
  [[nodiscard]] std::int64_t evaluations() const { return gaps_.evaluations(); }

 private:
  struct Found {
    AwayGaps away;
    Nanos iteration_time{};
    Nanos compute_time{};
  };
  void keep_best(bool feasible);
  [[nodiscard]] bool done(const LoadSearchOptions& options) const;

  Lowering& lowering_;
  Nanos lead_{};
  TimelineSearch timeline_;
  GapSearch gaps_;
  std::vector<AwayGaps> seeds_;
  std::optional<Found> found_;  ///< in the last run
  std::size_t given_ = 0;       ///< seeds that are always kept; those found rotate behind them
};

/// A load and the swaps that need no more.
struct TideLeastLoad {
  Bytes bytes = 0;
  Strategy strategy;
};

/// The least load limit under which the search stalls for at most `tolerance` of the compute time,
/// by bisection between `lower_bound` (see bound/fluid.h; 0: none known) and a load that is known
/// to do, which is returned where nothing less is found: the peak and nothing swapped, or better.
TideLeastLoad tide_least_load(Lowering& lowering, const std::vector<std::int32_t>& algorithms,
                              Bytes lower_bound, TideLeastLoad known, double tolerance,
                              const LoadSearchOptions& options);

}  // namespace tidepool
