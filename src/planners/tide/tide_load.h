// `tide` under a limit on the memory load alone: the search, without addresses. The planner `tide`
// adds those.
#pragma once

#include <memory>

#include "base/parallel.h"
#include "base/stop.h"
#include "planners/toolkit/allowance.h"
#include "planners/toolkit/gap_search.h"
#include "planners/toolkit/timeline_search.h"

namespace tidepool {

struct LoadSearchOptions {
  std::uint64_t seed = 1;
  /// A deadline, or a number of evaluations, which the threads divide: with one thread the result
  /// then repeats.
  Allowance allowance = Allowance::none();
  Stop stop;                 ///< called by several threads
  Nanos tolerated_stall{0};  ///< the search ends when no more than this is left
  /// Wants little load where the limit allows more: for addresses. Takes a part of the time.
  bool compact = false;
};

/// Searches for swaps under one load limit after another, each from what it is given and has found.
/// First on the timeline without stalls, then on the evaluator; from several starts, on several
/// threads.
class LoadSearch {
 public:
  /// `lowering` must outlive the search, which only reads it. One algorithm per op. `threads`: 0
  /// for as many as there are cores, up to eight.
  LoadSearch(const Lowering& lowering, const std::vector<std::int32_t>& algorithms,
             int threads = 0);
  ~LoadSearch();

  /// Adds a start for searches to come.
  void add_seed(AwayGaps away);
  void add_seed(const Strategy& strategy);

  /// False when nothing feasible is known under the limit. Not thread-safe.
  bool run(Bytes load_limit, const LoadSearchOptions& options);

  // Of the last run that returned true; state 0 is the fastest.
  [[nodiscard]] std::size_t found() const { return found_.size(); }
  [[nodiscard]] Strategy strategy(std::size_t state = 0);
  [[nodiscard]] Nanos iteration_time(std::size_t state = 0) const {
    return found_[state].iteration_time;
  }
  [[nodiscard]] Nanos compute_time() const { return compute_time_; }

  /// With which the timelines of the search are made: short, which leaves memory to others.
  [[nodiscard]] Nanos lead() const { return lead_; }

  [[nodiscard]] std::size_t threads() const { return workers_.size(); }
  /// Idle but in `run`.
  [[nodiscard]] ThreadPool& pool() { return *pool_; }
  /// Evaluator calls of all runs.
  [[nodiscard]] std::int64_t evaluations() const;
  /// Of its allowance, by the last run.
  [[nodiscard]] std::int64_t spent() const { return spent_; }

 private:
  struct Found {
    AwayGaps away;
    Nanos iteration_time{};
  };
  struct Worker;
  struct Run;

  const Lowering& lowering_;
  Nanos compute_time_{};
  Nanos lead_{};
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<ThreadPool> pool_;  ///< as many threads
  std::vector<AwayGaps> seeds_;
  std::vector<Found> found_;  ///< in the last run, the fastest first
  std::size_t given_ = 0;     ///< seeds that are always kept; those found rotate behind them
  std::int64_t spent_ = 0;
};

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
