#include "planners/toolkit/trigger_moves.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lower/expand.h"
#include "lower/lower.h"
#include "support/program_builder.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

std::vector<GapId> copied_gaps(const Strategy& strategy) {
  std::vector<GapId> gaps;
  for (std::size_t g = 0; g < strategy.gaps.size(); ++g) {
    const Decision d = strategy.gaps[g];
    if (d == Decision::swap || d == Decision::drop) gaps.push_back(static_cast<GapId>(g));
  }
  return gaps;
}

TEST(TriggerMoves, MakeHintsThatCanBeFollowedAndUndoThem) {
  int moved = 0;
  int wrapped_before = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    Lowering lowering(program, testing::random_machine(seed));
    Strategy strategy = lowering.everything_away(least_workspace_algorithms(program));
    const std::vector<GapId> gaps = copied_gaps(strategy);
    if (gaps.empty()) continue;
    TriggerMoves moves(program, lowering.index());
    Random random(seed);
    for (int i = 0; i < 200; ++i) {
      const GapId gap = gaps[random.below(gaps.size())];
      const Triggers before = moves.triggers();
      moves.change(gap, strategy.gaps[static_cast<std::size_t>(gap)], random);
      if (random.below(3) == 0) {
        moves.undo();
        ASSERT_EQ(moves.triggers(), before);
      }
      strategy.hints = in_effect(moves.triggers(), strategy.gaps);
      moved += strategy.hints.empty() ? 0 : 1;
      for (const CopyHint& hint : strategy.hints) {
        const Gap& of = lowering.index().gaps()[static_cast<std::size_t>(hint.gap)];
        wrapped_before += of.wraps && hint.in_trigger && *hint.in_trigger > of.from ? 1 : 0;
      }
      Expansion expansion;
      ASSERT_EQ(Expander(program, lowering.index()).expand(strategy, expansion), "");
    }
  }
  EXPECT_GT(moved, 1000);
  EXPECT_GT(wrapped_before, 0);
}

// A weight that the last op updates leaves in the next iteration at the earliest: when is no
// choice.
TEST(TriggerMoves, OfAGapThatBeginsWithTheLastOpBringItInAlone) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId weight = b.tensor("weight", 512, true);
  const TensorId middle = b.tensor("middle", 64);
  b.device("make", {{middle, write}}, Nanos{10});
  b.device("use", {{middle, read}, {weight, read}}, Nanos{10});
  b.device("update", {{middle, read}, {weight, update}}, Nanos{10});
  const Program program = b.build();
  Lowering lowering(program, testing::byte_a_nanosecond());
  const std::span<const Gap> gaps = lowering.index().gaps();
  const auto last = std::ranges::find_if(gaps, [](const Gap& g) { return g.wraps && g.from == 2; });
  ASSERT_NE(last, gaps.end());
  const auto gap = static_cast<GapId>(last - gaps.begin());
  TriggerMoves moves(program, lowering.index());
  Random random(1);
  int in = 0;
  for (int i = 0; i < 100; ++i) {
    moves.change(gap, Decision::swap, random);
    for (const CopyHint& hint : moves.triggers()) {
      EXPECT_FALSE(hint.out_trigger);
      in += hint.in_trigger ? 1 : 0;
    }
  }
  EXPECT_GT(in, 0);
}

TEST(TriggerMoves, OfGapsThatStayHaveNoEffect) {
  CopyHint out;
  out.gap = 0;
  out.out_trigger = 3;
  CopyHint both = out;
  both.gap = 1;
  both.in_trigger = 5;
  const Triggers triggers{out, both};
  using D = Decision;
  EXPECT_EQ(in_effect(triggers, std::vector{D::swap, D::swap}), triggers);
  EXPECT_TRUE(in_effect(triggers, std::vector{D::keep, D::recompute}).empty());
  const Triggers dropped = in_effect(triggers, std::vector{D::drop, D::drop});
  ASSERT_EQ(dropped.size(), 1U);
  EXPECT_EQ(dropped[0].gap, 1);
  EXPECT_FALSE(dropped[0].out_trigger);
  EXPECT_EQ(dropped[0].in_trigger, OpId{5});
}

TEST(TriggerMoves, TakesOfAStrategyItsTriggersAlone) {
  Strategy strategy;
  CopyHint barrier;
  barrier.gap = 7;
  barrier.out_barrier = 9;
  CopyHint both = barrier;
  both.gap = 4;
  both.in_trigger = 8;
  both.device_offset = 512;
  strategy.hints = {barrier, both};
  const Triggers triggers = triggers_of(strategy);
  ASSERT_EQ(triggers.size(), 1U);
  EXPECT_EQ(triggers[0].gap, 4);
  EXPECT_EQ(triggers[0].in_trigger, OpId{8});
  EXPECT_FALSE(triggers[0].out_barrier);
  EXPECT_FALSE(triggers[0].device_offset);
}

}  // namespace
}  // namespace tidepool
