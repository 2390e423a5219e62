#include "planners/toolkit/backward_copies.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lower/evaluate.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

using testing::kX;
using testing::kY;
using testing::kZ;
using testing::mib;
using testing::ms;
using testing::two_mib_a_ms;
using Example = testing::SwapExample;

// Ops of the example.
constexpr OpId kC = 2;
constexpr OpId kD = 3;
constexpr OpId kE = 4;

std::vector<SwapPick> picks_of(std::initializer_list<GapId> gaps) {
  std::vector<SwapPick> picks;
  for (const GapId g : gaps) picks.push_back({g, 0, true});
  return picks;
}

OpId trigger_of(const std::vector<CopyHint>& hints, GapId gap) {
  for (const CopyHint& hint : hints) {
    if (hint.gap == gap) return hint.in_trigger.value_or(kNone);
  }
  return kNone;
}

TEST(BackwardCopies, EachStartsAsLateAsItsAccessAndTheCopiesBehindItAllow) {
  const Example e;
  const auto hints = copies_in_backwards(e.candidates, picks_of({kX, kY, kZ}), mib(1000));
  ASSERT_EQ(hints.size(), 3U);
  // x, 2 ms, is due at 60 ms; z, 16 ms, at 50 ms and y, 8 ms, before it: at 58, 34 and 26 ms.
  EXPECT_EQ(trigger_of(hints, kX), kE);
  EXPECT_EQ(trigger_of(hints, kY), kC);
  // z is on its way out during D, right after the op that made it.
  EXPECT_EQ(trigger_of(hints, kZ), kD);
}

TEST(BackwardCopies, WaitUntilAfterOpsThatLeaveNoRoom) {
  const Example e;
  // Without the three, D has 65.5 MiB: with y back there is no room for z.
  const auto hints = copies_in_backwards(e.candidates, picks_of({kX, kY, kZ}), mib(100));
  EXPECT_EQ(trigger_of(hints, kY), kC);
  EXPECT_EQ(trigger_of(hints, kZ), kE);
  const auto tight = copies_in_backwards(e.candidates, picks_of({kX, kY, kZ}), mib(65.5));
  EXPECT_EQ(trigger_of(tight, kY), kE);
  EXPECT_EQ(trigger_of(tight, kZ), kE);
}

/// A weight that the first op reads and the second updates.
TEST(BackwardCopies, ForTheFirstOpTheyBelongIntoTheIterationBefore) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId w = b.tensor("w", mib(8), true);
  const TensorId a = b.tensor("a", mib(1));
  b.device("read", {{w, read}, {a, write}}, ms(10));
  b.device("update", {{w, update}}, ms(10));
  b.device("between", {{a, read}}, ms(10));
  b.device("peak", {{a, read}}, ms(10), mib(32));
  b.device("after", {{a, read}}, ms(10));
  const Program program = b.build();
  const AccessIndex index(program);
  const Machine machine = two_mib_a_ms();
  const SwapCandidates candidates(program, index, machine, std::vector<std::int32_t>(5, 0));
  GapId wrapping = kNone;
  for (GapId g = 0; g < static_cast<GapId>(index.gaps().size()); ++g) {
    if (index.gaps()[static_cast<std::size_t>(g)].wraps) wrapping = g;
  }
  ASSERT_NE(wrapping, kNone);
  // 4 ms before the iteration's end: during its last op.
  const auto hints = copies_in_backwards(candidates, picks_of({wrapping}), mib(1000));
  EXPECT_EQ(trigger_of(hints, wrapping), 4);
  Strategy strategy = keep_everything(program, index, std::vector<std::int32_t>(5, 0));
  strategy.gaps[static_cast<std::size_t>(wrapping)] = Decision::swap;
  strategy.hints = hints;
  Evaluator evaluator(program, index, machine);
  const Evaluation evaluation = evaluator.evaluate(strategy, {mib(34)});
  ASSERT_TRUE(evaluation.feasible) << evaluation.refused;
  EXPECT_EQ(evaluation.stall(), Nanos{0});
  EXPECT_LE(evaluation.peak_load, mib(34));
}

TEST(BackwardCopies, AreFeasibleWhereverTheSelectionMeetsTheLimit) {
  int swapping = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Program program = testing::large_program(seed);
    const Machine machine = testing::random_machine(seed);
    const AccessIndex index(program);
    Evaluator evaluator(program, index, machine);
    const SwapCandidates candidates(program, index, machine, least_workspace_algorithms(program));
    for (const SwapScore score : kSwapScores) {
      SwapOrder order(candidates, only(score));
      for (std::size_t n = 1; n < 40 && order.extend(n); n += 3) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << n << " picks");
        SwapSelection selection = order.first(n);
        for (const Bytes limit : {selection.peak, selection.peak + selection.peak / 8}) {
          selection.strategy.hints = copies_in_backwards(candidates, selection.picks, limit);
          const Evaluation e = evaluator.evaluate(selection.strategy, {limit});
          ASSERT_TRUE(e.feasible) << e.refused << " stuck at op " << e.stuck;
          EXPECT_LE(e.peak_load, limit);
          ++swapping;
        }
      }
    }
  }
  EXPECT_GT(swapping, 1000);
}

}  // namespace
}  // namespace tidepool
