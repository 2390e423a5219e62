// The search behind `tide` and `auto`: states under a load limit, and addresses for them, in turns.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "planners/planner_context.h"
#include "planners/tide/tide_load.h"
#include "planners/toolkit/load_limit.h"

namespace tidepool {

// Note [Tide]. Two questions take turns. How tensors are away over which gaps, under a limit on the
// memory load: asked of `LoadSearch` (tide_load.h), which begins with plans that are known and with
// what AutoSwap's scores pick. And which addresses: asked of `lower`, which may let placements
// share bytes wherever the waits cost no time by the schedule. How many bytes addresses need above
// the load differs much from state to state, so several states get little time each. The load limit
// goes down where their addresses exceed the budget and up where they do not; every third round
// tries the budget itself. From the second round on the search wants compact states: little load
// where the limit allows more, which leaves room for addresses. Rounds grow, in evaluations and in
// packing time, and do not depend on how much of either there will be: more is never worse. Copies
// in start as early as they can where that costs nothing, so that late ones are forgiven; otherwise
// shortly before they must.
//
// States that have had no addresses are passed over by the search, which would end with them again
// and again, until placing takes several times the effort. A state is known by its time: as likely
// as not another one of the same time to a nanosecond is the same but for what does not matter.
// States without stalls all have the same, and are not passed over.
//
// Where gaps may be remade, a second search that only swaps takes turns with the first in programs
// of few ops. Copies with hardly any clones between them often have addresses where the fastest
// states have none, and such a search finds them in a fraction of the evaluations. It makes the
// rounds that it would make alone, with the same seeds. Its share of the time is a half as long as
// what it finds, without addresses, is faster than the best plan; each round that finds nothing
// faster leaves it a quarter of that, but no less than an eighth of the time. Its best plans are
// starts of the first search.
//
// How long addresses are searched for grows with the rounds. In small programs it is at most a
// small multiple of what it takes to find other states: those that fit at all mostly do in
// milliseconds.

/// Of a planner's limit, where the machine has a file: for TideSearch::write_less.
inline constexpr double kToWriteLess = 0.2;

/// One call of a planner.
class TideSearch {
 public:
  struct Options {
    int threads = 0;          ///< 0: as many as there are cores
    bool recompute = false;   ///< gaps may be remade
    bool algorithms = false;  ///< ops may run others than the policy's
    /// Begins with what AutoSwap's scores pick too: in vast programs that takes the search's time.
    bool score_picks = true;
    std::string_view name;    ///< of the planner, for its progress
    std::string_view origin;  ///< who made the first plan
  };
  /// `first`: a plan inside the budget, of the context's own sub-batch. `context` must outlive the
  /// search.
  TideSearch(PlannerContext& context, Lowered first, const Options& options);

  /// Another plan's strategy to start from.
  void add_seed(const Strategy& strategy);
  /// A plan to return where nothing faster is found, and its strategy to start from.
  void add_plan(Lowered plan, std::string_view origin);
  /// Until nothing is left to gain, or the allowance is used up: first the context's, then what
  /// `extend` gives.
  void run();
  /// More time, or evaluations beside those used up, for the next `run`.
  void extend(const Allowance& allowance) { allowance_ = allowance; }
  /// Where the machine has a file: of the plans that are as fast as the best (wear.h) the one that
  /// writes least becomes the best, after a search for such plans.
  void write_less(const Allowance& allowance);

  /// No slower than the first; after `write_less` as fast.
  Lowered& best() { return best_; }
  [[nodiscard]] std::string note() const;
  /// Nothing is left to gain: it takes no longer than its ops do without any stall, with their
  /// fastest algorithms where they may be chosen.
  [[nodiscard]] bool met_the_least() const;
  [[nodiscard]] Nanos least_time() const { return load().compute_time(); }

  // Searches under the load of the best plan, without addresses, that may decide less: how long the
  // iteration then takes, from the best and what is known. Nanos::max() where nothing is found.
  [[nodiscard]] Nanos without_recomputing(const Allowance& allowance);
  [[nodiscard]] Nanos without_choosing(const Allowance& allowance);

 private:
  struct State {
    Strategy strategy;
    Nanos time{};
    Nanos lead{};
    Trial trial;
  };
  struct Placing;
  static constexpr std::uint64_t kToTheBudget = 3;            ///< every third round
  static constexpr std::size_t kPlaced = LoadSearch::kLanes;  ///< states of a round

  /// The second search's share of the time as long as it finds what is faster.
  static constexpr double kHalf = 0.5;

  /// A search under load limits, and what has come of its rounds.
  struct Side {
    Side(const PlannerContext& context, Lowering& lowering, const Options& options, bool recompute);
    void remember_failed(Nanos time, double effort) {
      double& most = failed[time];
      most = std::max(most, effort);
    }

    LoadSearch load;
    LoadLimit limit;
    std::uint64_t round = 0;
    int fruitful = 0;     ///< rounds under limits that something is feasible under
    bool placed = false;  ///< something that was found has had addresses
    /// By the time of states that had no addresses: the effort it took.
    std::map<Nanos, double> failed{};
    Nanos searched{0};     ///< by the first search of its last round
    double spent = 0;      ///< evaluations, or seconds
    double share = kHalf;  ///< the second's, of what both spend
  };

  [[nodiscard]] const LoadSearch& load() const { return sides_.front().load; }
  [[nodiscard]] bool to_the_budget() const;
  [[nodiscard]] Nanos stall() const { return best_.iteration_time - least_time(); }
  Side& next_side();
  bool round();
  void share_with_second(bool faster, bool best);
  static AlgorithmSpace space(const PlannerContext& context, const Lowering& lowering,
                              const Options& options);
  [[nodiscard]] Nanos search_less(const Allowance& allowance, GapSearch& search, bool remade);
  [[nodiscard]] bool over() const;
  [[nodiscard]] bool may_be_the_last(Nanos round) const;
  [[nodiscard]] Nanos tolerated_stall() const;
  void add_score_picks(const std::vector<std::int32_t>& algorithms, double part);
  PackingSearch packing_search();
  int turns(std::size_t states);
  bool search(Bytes limit, std::uint64_t seed);
  Bytes place_found(Bytes limit, std::uint64_t seed);
  Bytes take_best(Placing& p);
  void take(Lowered plan, std::string origin);
  void choose_states(Placing& p);
  [[nodiscard]] std::vector<Nanos> passed_over();
  void place_one(Placing& p, std::size_t i);
  [[nodiscard]] Nanos longest_lead(Lowering& lowering, const State& state, Bytes limit) const;

  PlannerContext& context_;
  const Budget& budget_;
  std::string_view name_;
  Allowance allowance_;
  Lowered best_;
  std::string origin_;
  std::vector<Lowered> frugal_;  ///< others that are as fast as the best and write less than it
  std::string wear_note_;
  std::deque<Side> sides_;       ///< the second, if there is one, only swaps
  Side* side_ = nullptr;         ///< whose turn it is
  std::deque<Lowering> others_;  ///< for states placed side by side
  /// What placing takes for each turn of the threads, beside searches for addresses.
  Nanos placing_;
};

}  // namespace tidepool
