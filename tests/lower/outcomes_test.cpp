// What is listed of a strategy's gaps is what its expansion does.
#include "schedule/outcomes.h"

#include <gtest/gtest.h>

#include <set>

#include "base/at.h"
#include "lower/expand.h"
#include "support/random_program.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

using testing::random_program;
using testing::random_strategy;

TEST(Outcomes, AreTheCopiesOfTheExpansion) {
  int copied = 0, remade = 0;
  for (std::uint64_t seed = 0; seed < testing::usual_or(300U, 40U); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = random_program(seed);
    const AccessIndex index(program);
    const Strategy strategy = random_strategy(program, index, 0.7, seed);
    Expander expander(program, index);
    Expansion x;
    if (!expander.expand(strategy, x).empty()) continue;
    std::set<GapId> in;
    for (const MoveId move : x.ins) in.insert(x.moves[at(move)].gap);
    const std::vector<Outcome> all = outcomes(program, index, strategy.gaps);
    for (std::size_t g = 0; g < all.size(); ++g) {
      if (index.gaps()[g].kind != GapKind::device) continue;
      const bool comes_back = all[g] == Outcome::swap || all[g] == Outcome::drop;
      EXPECT_EQ(in.contains(static_cast<GapId>(g)), comes_back)
          << "gap " << g << ", " << to_string(all[g]);
      copied += comes_back ? 1 : 0;
      remade += all[g] == Outcome::recompute ? 1 : 0;
    }
  }
  EXPECT_GT(copied, 0);
  EXPECT_GT(remade, 0);
}

/// What k-means assigns is the training's, and written anew in each iteration.
TEST(Outcomes, AValueThatIsWrittenOverDoesNotComeBack) {
  Program program;
  program.tensors = {{"assignments", 64, TensorKind::optimizer_state, true},
                     {"x", 64, TensorKind::activation, false}};
  Op assign, other;
  assign.name = "assign";
  assign.accesses = {{0, AccessMode::write}, {1, AccessMode::write}};
  other.name = "other";
  other.accesses = {{1, AccessMode::read}};
  program.ops = {assign, other};
  const AccessIndex index(program);
  std::vector<Decision> decisions(index.gaps().size(), Decision::keep);
  ASSERT_EQ(index.gaps(0).size(), 1U);
  decisions[at(index.first_gap(0))] = Decision::swap;
  EXPECT_EQ(outcomes(program, index, decisions)[at(index.first_gap(0))], Outcome::release);
}

}  // namespace
}  // namespace tidepool
