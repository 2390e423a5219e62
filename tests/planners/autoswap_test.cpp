#include "planners/autoswap.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "plan/check.h"
#include "planners/none.h"
#include "support/program_builder.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

using enum AccessMode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ProgramBuilder;

constexpr Nanos ms(int n) { return Nanos{n * 1'000'000}; }
constexpr Bytes mib(double n) { return static_cast<Bytes>(n * static_cast<double>(kMiB)); }
constexpr double kMib = static_cast<double>(kMiB);

/// Two MiB a millisecond each way, no latency.
Machine two_mib_a_ms() {
  Machine m;
  m.name = "test";
  m.alignment = 512;
  m.to_host = {2 * kMib * 1000, Nanos{0}};
  m.to_device = m.to_host;
  return m;
}

/// Loads in MiB: A 4.5, B 20.5, C 52.5, D 117.5 (the peak), E 53.5, F 4. Gaps over D: x (A to F,
/// 50 ms), y (B to E, 30 ms), z (C to E, 10 ms), s (A to E, too small to be a candidate).
struct Example {
  Program program = make();
  AccessIndex index{program};
  SwapCandidates candidates{program, index, two_mib_a_ms(), std::vector<std::int32_t>(6, 0)};

  static Program make() {
    ProgramBuilder b;
    const TensorId x = b.tensor("x", mib(4));
    const TensorId y = b.tensor("y", mib(16));
    const TensorId z = b.tensor("z", mib(32));
    const TensorId s = b.tensor("s", mib(0.5));
    const TensorId d = b.tensor("d", mib(1));
    b.device("A", {{x, write}, {s, write}}, ms(10));
    b.device("B", {{y, write}}, ms(10));
    b.device("C", {{z, write}}, ms(20));
    b.device("D", {{d, write}}, ms(10), mib(64));
    b.device("E", {{y, read}, {z, read}, {s, read}, {d, read}}, ms(10));
    b.device("F", {{x, read}}, ms(10));
    return b.build();
  }

  [[nodiscard]] std::vector<Bytes> load() const {
    return load_profile(program, index, 512, std::vector<std::int32_t>(6, 0)).at_op;
  }
  /// Tensors swapped to get the peak to `limit`, in the order of picking.
  [[nodiscard]] std::vector<std::string> swapped(SwapScore score, Bytes limit) const {
    std::vector<std::string> names;
    for (const auto& pick : candidates.select(score, limit).picks) {
      const Gap& gap = index.gaps()[static_cast<std::size_t>(pick.gap)];
      names.push_back(program.tensors[static_cast<std::size_t>(gap.tensor)].name);
    }
    return names;
  }
};
constexpr GapId kX = 0;
constexpr GapId kY = 1;
constexpr GapId kZ = 2;
constexpr GapId kS = 3;

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
  ASSERT_EQ(selection.picks.size(), 1u);
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
  EXPECT_EQ(selection.picks.size(), 3u);
  for (const auto& pick : selection.picks) EXPECT_TRUE(pick.candidate);
  EXPECT_EQ(selection.peak, mib(65.5));
}

TEST(AutoSwapSelection, BelowLoadMinOtherGapsOverThePeakAreTaken) {
  const Example e;
  for (const SwapScore score : kSwapScores) {
    const auto selection = e.candidates.select(score, mib(65.4));
    ASSERT_EQ(selection.picks.size(), 4u);
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

TEST(SwapScore, HasTheNamesOfThePaper) {
  EXPECT_EQ(to_string(SwapScore::doa), "DOA");
  EXPECT_EQ(to_string(SwapScore::aoa), "AOA");
  EXPECT_EQ(to_string(SwapScore::wdoa), "WDOA");
  EXPECT_EQ(to_string(SwapScore::swdoa), "SWDOA");
}

// ---- the planners

/// A random program whose tensors are large enough to be candidates, and links to match.
Program large_program(std::uint64_t seed) {
  Program p = testing::random_program(seed);
  for (Tensor& t : p.tensors) t.bytes *= 256;
  for (Op& op : p.ops) {
    for (Algorithm& a : op.algorithms) {
      a.workspace *= 256;
      a.time *= 256;
    }
  }
  return p;
}

Result<Planned> plan_with(Planner& planner, const Program& program, const Machine& machine,
                          Budget budget) {
  FixedWorkload workload(program);
  return make_plan(planner, workload, machine, budget, {});
}

constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max() / 4;

TEST(AutoSwap, HonoursEveryBudgetFromTheSmallestFeasibleOne) {
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = large_program(seed);
    const Machine machine = testing::random_machine(seed);
    const Bytes least = smallest_budget(program, machine.alignment).bytes;
    for (const double factor : {1.0, 1.2, 1.5, 2.0, 3.0}) {
      const auto budget = static_cast<Bytes>(static_cast<double>(least) * factor);
      const auto planned = plan_with(*make_autoswap(), program, machine, {budget, 0});
      ASSERT_TRUE(planned) << planned.error().message;
      EXPECT_LE(planned->lowered.plan.device_bytes, budget);
      EXPECT_EQ(planned->lowered.plan.planner, "autoswap");
    }
  }
}

TEST(AutoSwap, WithEnoughMemoryNothingIsSwappedAndNothingStalls) {
  const Example e;
  const auto planned = plan_with(*make_autoswap(), e.program, two_mib_a_ms(), {kUnlimited, 0});
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->lowered.iteration_time, ms(70));
  for (const Decision d : planned->lowered.strategy.gaps) EXPECT_EQ(d, Decision::keep);
}

TEST(AutoSwap, GivesAReasonForEveryGap) {
  const Example e;
  const auto planned = plan_with(*make_autoswap(), e.program, two_mib_a_ms(), {mib(100), 0});
  ASSERT_TRUE(planned) << planned.error().message;
  const Strategy& strategy = planned->lowered.strategy;
  ASSERT_EQ(strategy.reasons.size(), strategy.gaps.size());
  for (std::size_t g = 0; g < strategy.gaps.size(); ++g) {
    EXPECT_THAT(strategy.reasons[g],
                HasSubstr(strategy.gaps[g] == Decision::keep ? "kept" : "score"))
        << g;
  }
}

TEST(AutoSwap, SaysWhenTheBudgetIsBelowLoadMin) {
  const Example e;
  const auto planned = plan_with(*make_autoswap(), e.program, two_mib_a_ms(), {mib(65), 0});
  ASSERT_TRUE(planned) << planned.error().message;
  ASSERT_FALSE(planned->notes.empty());
  EXPECT_THAT(planned->notes, ::testing::Contains(HasSubstr("load_min")));
}

TEST(AutoSwap, IsNeverSlowerThanTheStreamingSchedule) {
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = large_program(seed);
    const Machine machine = testing::random_machine(seed);
    const Bytes budget = 2 * smallest_budget(program, machine.alignment).bytes;
    Lowering lowering(program, machine);
    Strategy stream =
        keep_everything(program, lowering.index(), least_workspace_algorithms(program));
    for (Decision& d : stream.gaps) d = Decision::swap;
    const auto streamed = lowering.lower(stream, {budget, 0});
    ASSERT_TRUE(streamed);
    const auto planned = plan_with(*make_autoswap(), program, machine, {budget, 0});
    ASSERT_TRUE(planned);
    EXPECT_LE(planned->lowered.iteration_time, streamed->iteration_time);
  }
}

TEST(None, WithoutALimitHasNoStalls) {
  const Example e;
  const auto planned = plan_with(*make_none(), e.program, two_mib_a_ms(), {kUnlimited, 0});
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->lowered.iteration_time, ms(70));
  EXPECT_EQ(planned->lowered.plan.device_bytes, mib(117.5));
}

TEST(None, AnInfeasibleBudgetNamesOneThatThenWorks) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = large_program(seed);
    const Machine machine = testing::random_machine(seed);
    const Bytes least = smallest_budget(program, machine.alignment).bytes;
    const auto refused = plan_with(*make_none(), program, machine, {least, 0});
    if (refused) continue;  // nothing lives longer than one op
    EXPECT_EQ(refused.error().code, ErrorCode::infeasible);
    EXPECT_THAT(refused.error().message, HasSubstr("autoswap"));
    ASSERT_TRUE(refused.error().smallest_feasible);
    const Bytes named = *refused.error().smallest_feasible;
    EXPECT_GT(named, least);
    const auto planned = plan_with(*make_none(), program, machine, {named, 0});
    ASSERT_TRUE(planned) << planned.error().message;
    EXPECT_LE(planned->lowered.plan.device_bytes, named);
  }
}

TEST(None, TheBudgetItNamesIsTheSmallestOneThatWorks) {
  int refusals = 0;
  int smaller_works = 0;
  std::string first;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Program program = large_program(seed);
    const Machine machine = testing::random_machine(seed);
    const Bytes least = smallest_budget(program, machine.alignment).bytes;
    const auto refused = plan_with(*make_none(), program, machine, {least, 0});
    if (refused) continue;
    ++refusals;
    const Bytes below = *refused.error().smallest_feasible - machine.alignment;
    if (plan_with(*make_none(), program, machine, {below, 0}) && smaller_works++ == 0) {
      first = fmt::format("seed {}: {} B works too", seed, below);
    }
  }
  EXPECT_EQ(smaller_works, 0) << "of " << refusals << "; " << first;
}

}  // namespace
}  // namespace tidepool
