// The search behind `tide` and `auto`: states under a load limit, and addresses for them, in turns.
#pragma once

#include <deque>
#include <string>

#include "planners/planner_context.h"
#include "planners/tide/tide_load.h"

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

/// One call of a planner.
class TideSearch {
 public:
  struct Options {
    int threads = 0;          ///< 0: as many as there are cores
    bool recompute = false;   ///< gaps may be remade
    std::string_view name;    ///< of the planner, for its progress
    std::string_view origin;  ///< who made the first plan
  };
  /// `first`: a plan inside the budget. `context` must outlive the search.
  TideSearch(PlannerContext& context, Lowered first, const Options& options);

  /// Another plan's strategy to start from.
  void add_seed(const Strategy& strategy) { load_.add_seed(strategy); }
  /// Until nothing is left to gain, or the context's allowance is used up.
  void run();

  /// No slower than the first.
  Lowered& best() { return best_; }
  [[nodiscard]] std::string note() const;

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
  [[nodiscard]] bool over() const;
  [[nodiscard]] Nanos tolerated_stall() const;
  void add_score_picks();
  PackingSearch packing_search();
  int turns(std::size_t states);
  bool search(Bytes limit, std::uint64_t seed);
  Bytes place_found(Bytes limit, std::uint64_t seed);
  Bytes take_best(Placing& p);
  void place_one(Placing& p, std::size_t i);
  [[nodiscard]] Nanos longest_lead(Lowering& lowering, const State& state, Bytes limit) const;

  PlannerContext& context_;
  const Budget& budget_;
  std::string_view name_;
  bool recompute_;
  Allowance allowance_;
  Lowered best_;
  std::string origin_;
  LoadSearch load_;
  std::uint64_t round_ = 0;
  std::deque<Lowering> others_;  ///< for states placed side by side
  Nanos placing_{0};             ///< what placing took last time beside searches for addresses
};

}  // namespace tidepool
