#include "planners/toolkit/swap_candidates.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/swap_programs.h"

namespace tidepool {
namespace {

using enum AccessMode;
using ::testing::ElementsAre;
using testing::kMib;
using testing::kS;
using testing::kX;
using testing::kY;
using testing::kZ;
using testing::mib;
using testing::ms;
using testing::ProgramBuilder;
using testing::two_mib_a_ms;
using Example = testing::SwapExample;

TEST(AutoSwapCandidates, AreLargeEnoughAndSpanThePeak) {
  const Example e;
  EXPECT_THAT(e.load(), ElementsAre(mib(4.5), mib(20.5), mib(52.5), mib(117.5), mib(53.5), mib(4)));
  EXPECT_THAT(
      std::vector<GapId>(e.candidates.candidates().begin(), e.candidates.candidates().end()),
      ElementsAre(kX, kY, kZ));
}

TEST(AutoSwapScores, DoaIsTheGapLessBothTransfers) {
  const Example e;
  const auto doa = [&](GapId g) { return e.candidates.score(SwapScore::doa, g, e.load()); };
  EXPECT_NEAR(doa(kX), 0.050 - 0.002 - 0.002, 1e-8);
  EXPECT_NEAR(doa(kY), 0.030 - 0.008 - 0.008, 1e-8);
  EXPECT_NEAR(doa(kZ), 0.010 - 0.016 - 0.016, 1e-8);
}

TEST(AutoSwapScores, AoaMultipliesAPositiveDoaByTheSizeAndDividesANegativeOne) {
  const Example e;
  const auto aoa = [&](GapId g) { return e.candidates.score(SwapScore::aoa, g, e.load()); };
  EXPECT_NEAR(aoa(kX), 0.046 * 4 * kMib, 1);
  EXPECT_NEAR(aoa(kY), 0.014 * 16 * kMib, 1);
  EXPECT_NEAR(aoa(kZ), -0.022 / (32 * kMib), 1e-15);
}

TEST(AutoSwapScores, WdoaIsTheAreaUnderTheLoadOverTheGap) {
  const Example e;
  const auto wdoa = [&](GapId g) { return e.candidates.score(SwapScore::wdoa, g, e.load()); };
  EXPECT_NEAR(wdoa(kX) / kMib, 0.01 * 20.5 + 0.02 * 52.5 + 0.01 * 117.5 + 0.01 * 53.5, 1e-6);
  EXPECT_NEAR(wdoa(kY) / kMib, 0.02 * 52.5 + 0.01 * 117.5, 1e-6);
  EXPECT_NEAR(wdoa(kZ) / kMib, 0.01 * 117.5, 1e-6);
}

TEST(AutoSwapScores, AWrappingGapLastsFromItsLastUseToItsFirstUseOfTheNextIteration) {
  ProgramBuilder b;
  const TensorId w = b.tensor("w", mib(4), true);
  const TensorId y = b.tensor("y", mib(2));
  b.device("before", {{y, write}}, ms(3));
  b.device("use", {{w, read}}, ms(10));
  b.device("update", {{w, update}}, ms(10));
  b.device("after", {{y, read}}, ms(20), mib(8));
  const Program program = b.build();
  const AccessIndex index(program);
  const SwapCandidates candidates(program, index, two_mib_a_ms(), std::vector<std::int32_t>(4, 0));
  const GapId wrap = index.first_gap(w) + 1;
  EXPECT_THAT(std::vector<GapId>(candidates.candidates().begin(), candidates.candidates().end()),
              ElementsAre(wrap));
  const std::vector<Bytes> load =
      load_profile(program, index, 512, std::vector<std::int32_t>(4, 0)).at_op;
  EXPECT_NEAR(candidates.score(SwapScore::doa, wrap, load), 0.020 + 0.003 - 0.002 - 0.002, 1e-8);
  // Loads: 14 MiB in "after" (w, y, workspace), 6 in "before".
  EXPECT_NEAR(candidates.score(SwapScore::wdoa, wrap, load) / kMib, 0.020 * 14 + 0.003 * 6, 1e-6);
}

TEST(AutoSwapSelection, TakesTheHighestScoresUntilTheLimitIsMet) {
  const Example e;
  EXPECT_THAT(e.swapped(SwapScore::doa, mib(117.5)), ElementsAre());
  EXPECT_THAT(e.swapped(SwapScore::doa, mib(117.4)), ElementsAre("x"));
  EXPECT_THAT(e.swapped(SwapScore::doa, mib(113.4)), ElementsAre("x", "y"));
  EXPECT_THAT(e.swapped(SwapScore::doa, mib(97.4)), ElementsAre("x", "y", "z"));
  EXPECT_THAT(e.swapped(SwapScore::aoa, mib(117.4)), ElementsAre("y"));
  EXPECT_THAT(e.swapped(SwapScore::aoa, mib(101.4)), ElementsAre("y", "x"));
  EXPECT_THAT(e.swapped(SwapScore::aoa, mib(97.4)), ElementsAre("y", "x", "z"));
  EXPECT_THAT(e.swapped(SwapScore::wdoa, mib(97.4)), ElementsAre("x", "y", "z"));
  EXPECT_THAT(e.swapped(SwapScore::wdoa, mib(117.4)), ElementsAre("x"));
  EXPECT_THAT(e.swapped(SwapScore::swdoa, mib(117.4)), ElementsAre("x"));
}

TEST(AutoSwapSelection, ReportsThePeakThePicksAndTheStrategyThatHasThem) {
  const Example e;
  const auto selection = e.candidates.select(SwapScore::aoa, mib(101.5));
  EXPECT_EQ(selection.peak, mib(101.5));
  ASSERT_EQ(selection.picks.size(), 1U);
  EXPECT_EQ(selection.picks[0].gap, kY);
  EXPECT_TRUE(selection.picks[0].candidate);
  EXPECT_NEAR(selection.picks[0].score, 0.014 * 16 * kMib, 1);
  EXPECT_THAT(selection.strategy.gaps, ElementsAre(Decision::keep, Decision::swap, Decision::keep,
                                                   Decision::keep, Decision::keep));
}

/// WDOA ranks r, p, q; once r is out, the curve under p is far lower than the one under q.
TEST(AutoSwapSelection, SwdoaScoresAgainAfterEachPick) {
  ProgramBuilder b;
  const TensorId r = b.tensor("r", mib(32));
  const TensorId p = b.tensor("p", mib(2));
  const TensorId q = b.tensor("q", mib(2));
  const TensorId d = b.tensor("d", mib(1));
  b.device("B", {{r, write}, {p, write}}, ms(10));
  b.device("C", {{q, write}}, ms(11));
  b.device("D", {{d, write}}, ms(10), mib(64));
  b.device("E", {{r, read}, {p, read}, {d, read}}, ms(10));
  b.device("F", {{q, read}}, ms(10));
  const Program program = b.build();
  const AccessIndex index(program);
  const SwapCandidates candidates(program, index, two_mib_a_ms(), std::vector<std::int32_t>(5, 0));
  const auto wdoa = candidates.select(SwapScore::wdoa, mib(68)).strategy.gaps;
  EXPECT_THAT(wdoa, ElementsAre(Decision::swap, Decision::swap, Decision::keep, Decision::keep));
  const auto swdoa = candidates.select(SwapScore::swdoa, mib(68)).strategy.gaps;
  EXPECT_THAT(swdoa, ElementsAre(Decision::swap, Decision::keep, Decision::swap, Decision::keep));
}

TEST(AutoSwapSelection, LoadMinIsThePeakWithEveryCandidateSwapped) {
  const Example e;
  EXPECT_EQ(e.candidates.load_min(), mib(65.5));
  const auto selection = e.candidates.select(SwapScore::doa, mib(65.5));
  EXPECT_EQ(selection.picks.size(), 3U);
  for (const auto& pick : selection.picks) EXPECT_TRUE(pick.candidate);
  EXPECT_EQ(selection.peak, mib(65.5));
}

TEST(AutoSwapSelection, BelowLoadMinOtherGapsOverThePeakAreTaken) {
  const Example e;
  for (const SwapScore score : kSwapScores) {
    const auto selection = e.candidates.select(score, mib(65.4));
    ASSERT_EQ(selection.picks.size(), 4U);
    EXPECT_FALSE(selection.picks[3].candidate);
    EXPECT_EQ(selection.picks[3].gap, kS);
    EXPECT_EQ(selection.strategy.gaps[kS], Decision::swap);
    EXPECT_EQ(selection.peak, mib(65));
  }
}

TEST(AutoSwapSelection, WhenNoGapIsLeftItStops) {
  const Example e;
  const auto selection = e.candidates.select(SwapScore::doa, 0);
  EXPECT_EQ(selection.peak, mib(65));
}

TEST(AutoSwapSelection, TheThresholdIsAnOption) {
  const Example e;
  const SwapCandidates candidates(e.program, e.index, two_mib_a_ms(),
                                  std::vector<std::int32_t>(6, 0), mib(0.5));
  EXPECT_THAT(std::vector<GapId>(candidates.candidates().begin(), candidates.candidates().end()),
              ElementsAre(kX, kY, kZ, kS));
}

/// Section IV-D word by word: pick the best, lower the load, until the peak is low enough.
class StepByStep {
 public:
  StepByStep(const SwapCandidates& candidates, SwapScore score, Bytes alignment)
      : c_(candidates),
        score_(score),
        alignment_(alignment),
        load_(candidates.load().begin(), candidates.load().end()) {}

  std::vector<GapId> picks(Bytes limit) {
    std::vector<GapId> left(c_.candidates().begin(), c_.candidates().end());
    while (peak() > limit && !left.empty()) left.erase(pick_best(left));
    while (peak() > limit) {
      const auto op =
          static_cast<OpId>(std::max_element(load_.begin(), load_.end()) - load_.begin());
      left.clear();
      for (GapId g = 0; g < static_cast<GapId>(c_.index().gaps().size()); ++g) {
        const Gap& gap = gap_of(g);
        const bool free = std::find(picked_.begin(), picked_.end(), g) == picked_.end();
        if (free && gap.kind == GapKind::device && SwapCandidates::spans(gap, op)) {
          left.push_back(g);
        }
      }
      if (left.empty()) break;
      pick_best(left);
    }
    return picked_;
  }
  [[nodiscard]] Bytes peak() const { return *std::max_element(load_.begin(), load_.end()); }

 private:
  [[nodiscard]] const Gap& gap_of(GapId g) const {
    return c_.index().gaps()[static_cast<std::size_t>(g)];
  }

  std::vector<GapId>::iterator pick_best(std::vector<GapId>& left) {
    const std::vector<Bytes> first(c_.load().begin(), c_.load().end());
    const std::vector<Bytes>& curve = score_ == SwapScore::swdoa ? load_ : first;
    const auto best = std::max_element(left.begin(), left.end(), [&](GapId a, GapId b) {
      return c_.score(score_, a, curve) < c_.score(score_, b, curve);
    });
    picked_.push_back(*best);
    const Gap& gap = gap_of(*best);
    const Tensor& tensor = c_.program().tensors[static_cast<std::size_t>(gap.tensor)];
    for (OpId op = 0; op < static_cast<OpId>(load_.size()); ++op) {
      if (SwapCandidates::spans(gap, op)) {
        load_[static_cast<std::size_t>(op)] -= align_up(tensor.bytes, alignment_);
      }
    }
    return best;
  }

  const SwapCandidates& c_;
  SwapScore score_;
  Bytes alignment_;
  std::vector<Bytes> load_;
  std::vector<GapId> picked_;
};

std::vector<GapId> gaps_of(std::span<const SwapPick> picks) {
  std::vector<GapId> gaps;
  for (const SwapPick& pick : picks) gaps.push_back(pick.gap);
  return gaps;
}

TEST(SwapOrder, IsThatOfPickingStepByStep) {
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    const Program program = testing::large_program(seed);
    const Machine machine = testing::random_machine(seed);
    const AccessIndex index(program);
    const SwapCandidates candidates(program, index, machine, least_workspace_algorithms(program));
    for (const SwapScore score : kSwapScores) {
      SwapOrder order(candidates, only(score));
      for (const double part : {0.9, 0.0, 0.7, 0.5}) {
        SCOPED_TRACE(fmt::format("seed {}, {}, {}", seed, to_string(score), part));
        const auto limit = static_cast<Bytes>(part * static_cast<double>(order.peak_after(0)));
        StepByStep step_by_step(candidates, score, machine.alignment());
        const SwapSelection selection = order.select(limit);
        EXPECT_EQ(gaps_of(selection.picks), step_by_step.picks(limit));
        EXPECT_EQ(selection.peak, step_by_step.peak());
      }
    }
  }
}

TEST(SwapOrder, CombinesStandardisedScores) {
  const Example e;
  // DOA in ms: x 46, y 14, z -22; mean 38/3. Areas as in the test of WDOA.
  const double mean = 38.0 / 3;
  const double deviation = std::sqrt(
      ((46 - mean) * (46 - mean) + (14 - mean) * (14 - mean) + (-22 - mean) * (-22 - mean)) / 3);
  SwapOrder order(e.candidates, {-1, 0, 0, 0});
  EXPECT_TRUE(order.extend(3));
  EXPECT_THAT(gaps_of(order.picks()), ElementsAre(kZ, kY, kX));
  EXPECT_NEAR(order.picks()[0].score, (22 + mean) / deviation, 1e-6);
  EXPECT_NEAR(order.picks()[2].score, (mean - 46) / deviation, 1e-6);
  EXPECT_FALSE(order.extend(100)) << "there are only so many gaps";
}

TEST(SwapWeights, AreSpelledOut) {
  EXPECT_EQ(to_string(only(SwapScore::wdoa)), "WDOA");
  EXPECT_EQ(to_string(SwapWeights{0.5, 0, -0.25, 0}), "0.50 DOA - 0.25 WDOA");
  EXPECT_EQ(to_string(SwapWeights{-1, 0, 0, 1}), "-1.00 DOA + 1.00 SWDOA");
  EXPECT_EQ(to_string(SwapWeights{}), "no score");
}

TEST(SwapScore, HasTheNamesOfThePaper) {
  EXPECT_EQ(to_string(SwapScore::doa), "DOA");
  EXPECT_EQ(to_string(SwapScore::aoa), "AOA");
  EXPECT_EQ(to_string(SwapScore::wdoa), "WDOA");
  EXPECT_EQ(to_string(SwapScore::swdoa), "SWDOA");
}

}  // namespace
}  // namespace tidepool
