// The search behind `tide` and `auto`: states under a load limit, and addresses for them, in turns.
#pragma once

#include <deque>
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
  void add_seed(const Strategy& strategy) { load_.add_seed(strategy); }
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
  [[nodiscard]] Nanos least_time() const { return load_.compute_time(); }

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

  [[nodiscard]] bool to_the_budget() const;
  [[nodiscard]] Nanos stall() const { return best_.iteration_time - load_.compute_time(); }
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
  void place_one(Placing& p, std::size_t i);
  [[nodiscard]] Nanos longest_lead(Lowering& lowering, const State& state, Bytes limit) const;

  PlannerContext& context_;
  const Budget& budget_;
  std::string_view name_;
  bool recompute_;
  Allowance allowance_;
  Lowered best_;
  std::string origin_;
  std::vector<Lowered> frugal_;  ///< others that are as fast as the best and write less than it
  std::string wear_note_;
  LoadSearch load_;
  LoadLimit limit_;
  std::uint64_t round_ = 0;
  std::deque<Lowering> others_;  ///< for states placed side by side
  bool placed_ = false;          ///< something that was found has had addresses
  /// What placing takes for each turn of the threads, beside searches for addresses.
  Nanos placing_{0};
};

}  // namespace tidepool
