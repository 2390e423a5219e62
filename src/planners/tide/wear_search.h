// The search for a plan that writes less to the machine's file and is as fast.
#pragma once

#include <span>

#include "planners/toolkit/allowance.h"
#include "planners/toolkit/gap_search.h"
#include "planners/toolkit/load_limit.h"

namespace tidepool {

// Note [Wear]. From the plan that writes least of those that are known and fast enough, states that
// write less are looked for (GapSearch with `fast_enough`): at first what leaves is brought back,
// the largest first, as long as the iteration is fast enough; then gaps change places. As in Note
// [Tide] they are looked for under a limit on the memory load, as addresses need more than the
// load: down by what they exceed the budget, up where they fit. Rounds are short, as the limit has
// to be found, and do not depend on the allowance: more of it never finds less.

class WearSearch {
 public:
  struct Options {
    std::uint64_t seed = 1;
    Allowance allowance = Allowance::none();
    Stop stop;
  };

  /// All must outlive the search. Plans whose iteration takes longer than `fast_enough` are of no
  /// use.
  WearSearch(Lowering& lowering, const Budget& budget, std::span<const RemakableGap> remakable,
             const AlgorithmSpace& space, Nanos fast_enough);

  /// Inside the budget, and fast enough. One is needed.
  void add_plan(Lowered plan);
  /// Until nothing is written, or with the allowance.
  void run(const Options& options);

  /// Of those added and found.
  Lowered& best() { return best_; }
  [[nodiscard]] std::int64_t evaluations() const { return search_.evaluations(); }

 private:
  struct State {
    AwayGaps away;
    std::vector<std::int32_t> algorithms;
  };
  [[nodiscard]] State state_of(const Strategy& strategy) const;
  Nanos lead_of(const State& start, Bytes limit);
  bool find(Bytes limit, const Options& options, std::int64_t evaluations, Allowance& left);
  Bytes place_found(Bytes limit, int round, const Options& options);

  Lowering& lowering_;
  const Budget& budget_;
  Nanos fast_enough_;
  GapSearch search_;
  LoadLimit limit_;
  Lowered best_;
  Bytes written_ = -1;  ///< by the best; -1: there is none yet
  State found_;         ///< by the last round
  Nanos lead_{};        ///< of its copies in
};

}  // namespace tidepool
