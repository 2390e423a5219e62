// `tide` under a limit on the memory load alone: the search, without addresses. The planner `tide`
// adds those.
#pragma once

#include <array>
#include <limits>
#include <memory>

#include "base/parallel.h"
#include "base/stop.h"
#include "planners/toolkit/allowance.h"
#include "planners/toolkit/gap_search.h"
#include "planners/toolkit/price_search.h"
#include "planners/toolkit/timeline_search.h"

namespace tidepool {

/// Stalls of this part of the compute time are few: the timeline's starts are good.
inline constexpr int kFewStalls = 100;

struct LoadSearchOptions {
  std::uint64_t seed = 1;
  /// A deadline, or a number of evaluations: the result then repeats, on any number of threads.
  Allowance allowance = Allowance::none();
  Stop stop;                 ///< called by several threads
  Nanos tolerated_stall{0};  ///< the search ends when no more than this is left
  /// Wants little load where the limit allows more: for addresses.
  bool compact = false;
  /// In order. Searches neither begin with states of just these times nor end with them, where
  /// there are others: they are known to have no addresses. They come last in what is found.
  std::span<const Nanos> passed_over{};
  int rounds = std::numeric_limits<int>::max();
};

// Note [Load search]. A search goes on in rounds. In each, a fixed number of lanes start from
// states that are known or from the timeline (TimelineSearch), each anneals on the evaluator
// (GapSearch) for as many evaluations as the others, and what they find is known from then on. Each
// round is longer than the one before, whatever the allowance: one that is twice as large makes the
// same rounds first, so it never finds less. Where the ops must wait for copies, copies in are best
// early; where nothing needs to wait, late ones leave memory to others: which, a state's lead says.
// Where gaps may be remade, a lane that starts from the timeline mostly takes them as a known state
// has them, and sometimes as many of the cheapest as chance says.
//
// Under a limit that is new the prices of bytes (PriceSearch) are found first, by each lane: their
// states are known before the first round, and mostly they are better than what is given. In
// programs of many ops half of the lanes, or more, then only try moves that promise something by
// these prices (MoveScreen).
//
// Where algorithms may be chosen they are part of a state. Some starts also count with the fastest
// algorithms that fit beside what is away in them. A lane that starts from the timeline takes the
// best state's, or prices the bytes by which an op exceeds the limit: at most with what copying
// them out and in takes, at least with nothing, which gives the fastest. Another lane may begin
// with what fits beside its state. The annealing then changes both.

/// Searches for swaps, and recomputations where asked to, under one load limit after another, each
/// from what it is given and has found.
class LoadSearch {
 public:
  /// `lowering` must outlive the search, which only reads it. One algorithm per op. `threads`: 0
  /// for as many as there are cores; no more than kLanes are of use. `space`: what else ops may
  /// run; empty where `algorithms` are given.
  LoadSearch(const Lowering& lowering, const std::vector<std::int32_t>& algorithms, int threads = 0,
             bool recompute = false, const Stop& stop = {}, AlgorithmSpace space = {});
  ~LoadSearch();

  static constexpr std::size_t kLanes = 4;

  /// Adds a start for searches to come, with the given algorithms.
  void add_seed(AwayGaps away);
  /// With its triggers, and its own algorithms where they may be chosen. One that is no strategy of
  /// this program (some complete plans have none) is none.
  void add_seed(const Strategy& strategy);

  /// False when nothing feasible is known under the limit. Not thread-safe.
  bool run(Bytes load_limit, const LoadSearchOptions& options);

  /// Evaluations of the next run's first round, at most: as many for each lane, and one for each
  /// start.
  [[nodiscard]] std::int64_t next_round() const;

  // Of the last run that returned true; state 0 is the fastest that is not passed over, and no two
  // are the same.
  [[nodiscard]] std::size_t found() const { return found_.size(); }
  [[nodiscard]] Strategy strategy(std::size_t state = 0);
  [[nodiscard]] Nanos iteration_time(std::size_t state = 0) const {
    return found_[state].iteration_time;
  }
  /// With which the state has its time.
  [[nodiscard]] Nanos lead(std::size_t state = 0) const { return found_[state].lead; }
  /// Of an iteration without clones, with the fastest algorithms where they may be chosen.
  [[nodiscard]] Nanos compute_time() const { return compute_time_; }
  [[nodiscard]] std::span<const RemakableGap> remakable() const { return remakable_; }
  [[nodiscard]] const AlgorithmSpace& space() const { return space_; }

  /// Idle but in `run`.
  [[nodiscard]] ThreadPool& pool() { return *pool_; }
  /// Evaluator calls of all runs.
  [[nodiscard]] std::int64_t evaluations() const;
  /// Changes of a state that were thought of: evaluated, or screened.
  [[nodiscard]] std::int64_t moves() const;
  /// Of its allowance, by the last run.
  [[nodiscard]] std::int64_t spent() const { return spent_; }

 private:
  struct Found {
    AwayGaps away;
    std::vector<std::int32_t> algorithms;
    Triggers triggers;
    Nanos lead{};
    Nanos iteration_time{};
  };
  struct Seed {
    AwayGaps away;
    std::vector<std::int32_t> algorithms;
    Triggers triggers;
    bool operator==(const Seed&) const = default;
  };
  struct Worker;
  struct Run;

  /// Once, however many planners have found it.
  void add_seed(Seed seed);

  /// In the next round, of each lane.
  [[nodiscard]] std::int64_t lane_evaluations() const;

  [[nodiscard]] bool moves_triggers(std::size_t lane) const;
  /// Seeds that are also timed with fitting algorithms, at most.
  [[nodiscard]] std::size_t fits() const;
  /// Evaluations that the starts of the next run take.
  [[nodiscard]] std::int64_t starts() const;

  const Lowering& lowering_;
  std::vector<std::int32_t> algorithms_;  ///< the given ones; of least workspace with a space
  AlgorithmSpace space_;
  std::vector<Bytes> kept_load_;  ///< per op, everything kept, without workspaces; with a space
  Nanos compute_time_{};
  std::array<Nanos, 3> leads_{};                  ///< longest first
  std::vector<RemakableGap> remakable_;           ///< empty: nothing is remade
  std::vector<std::unique_ptr<Worker>> workers_;  ///< one a lane
  std::unique_ptr<ThreadPool> pool_;
  std::vector<Seed> seeds_;
  std::vector<Found> known_;  ///< by earlier runs
  Bytes known_limit_ = 0;     ///< under which they have their times
  std::vector<Found> found_;  ///< in the last run, the fastest first
  int rounds_ = 0;            ///< of all runs
  std::int64_t spent_ = 0;
};

}  // namespace tidepool
