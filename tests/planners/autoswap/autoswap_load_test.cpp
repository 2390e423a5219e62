#include "planners/autoswap/autoswap_load.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/swap_programs.h"

namespace tidepool {
namespace {

using testing::mib;
using testing::ms;

/// A random program with its candidates.
struct LoadSubject {
  explicit LoadSubject(std::uint64_t seed)
      : program(testing::large_program(seed)),
        machine(testing::random_machine(seed)),
        evaluator(program, index, machine),
        candidates(program, index, machine, least_workspace_algorithms(program)) {}

  [[nodiscard]] Bytes part_of_peak(double part) const {
    const auto load = candidates.load();
    return static_cast<Bytes>(part *
                              static_cast<double>(*std::max_element(load.begin(), load.end())));
  }
  Program program;
  Machine machine;
  AccessIndex index{program};
  Evaluator evaluator;
  SwapCandidates candidates;
};

TEST(SelectUnderLoad, PicksAndTimesUnderTheSameLimit) {
  const testing::SwapExample e;
  Evaluator evaluator(e.program, e.index, testing::two_mib_a_ms());
  // x leaves during B and comes back during E: nothing waits.
  const LoadedSelection found =
      select_under_load(evaluator, e.candidates, only(SwapScore::doa), mib(113.5));
  ASSERT_TRUE(found.evaluation.feasible);
  EXPECT_EQ(found.selection.peak, mib(113.5));
  EXPECT_EQ(found.evaluation.peak_load, mib(113.5));
  EXPECT_EQ(found.evaluation.iteration_time, ms(70));
  // z leaves in 16 ms, right before the op that needs its memory.
  const LoadedSelection late = select_under_load(evaluator, e.candidates, {-1, 0, 0, 0}, mib(85.5));
  ASSERT_TRUE(late.evaluation.feasible);
  EXPECT_GE(late.evaluation.stall(), ms(16));
}

TEST(SearchWeights, IsNeverSlowerThanAnyScoreAlone) {
  int faster = 0;
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    LoadSubject s(seed);
    for (const double part : {0.9, 0.7, 0.5}) {
      const Bytes limit = s.part_of_peak(part);
      Nanos best = Nanos::max();
      for (const SwapScore score : kSwapScores) {
        const auto single = select_under_load(s.evaluator, s.candidates, only(score), limit);
        if (single.evaluation.feasible) best = std::min(best, single.evaluation.iteration_time);
      }
      WeightSearchOptions options;
      options.evaluations = 12;
      const auto found = search_weights(s.evaluator, s.candidates, limit, limit, options);
      if (best == Nanos::max()) continue;
      ASSERT_TRUE(found.evaluation.feasible) << seed;
      EXPECT_LE(found.evaluation.iteration_time, best) << seed;
      EXPECT_LE(found.evaluation.peak_load, limit);
      faster += found.evaluation.iteration_time < best ? 1 : 0;
      const Evaluation again = s.evaluator.evaluate(found.selection.strategy, {limit});
      EXPECT_EQ(again.iteration_time, found.evaluation.iteration_time);
    }
  }
  EXPECT_GT(faster, 0);
}

TEST(SearchWeights, ThePublishedOneEvaluatesEverythingAlsoWhereNothingStalls) {
  LoadSubject s(1);
  const Bytes peak = s.part_of_peak(1);
  const auto evaluations = [&](WeightSearchOptions options) {
    int asked = 0;
    options.stop = [&] { return ++asked < 0; };
    const auto found = search_weights(s.evaluator, s.candidates, peak, peak, options);
    EXPECT_EQ(found.evaluation.stall(), Nanos{0});
    return asked;
  };
  EXPECT_LE(evaluations({}), 2);
  EXPECT_GE(evaluations(published_search(1, {})), 36);
}

TEST(SearchWeights, WhenCancelledAtOnceNothingIsFound) {
  LoadSubject s(1);
  WeightSearchOptions options;
  options.stop = [] { return true; };
  const Bytes limit = s.part_of_peak(0.7);
  EXPECT_FALSE(
      search_weights(s.evaluator, s.candidates, limit, limit, options).evaluation.feasible);
}

TEST(LeastLoad, NoPlainSelectionHasNoOverheadUnderLess) {
  WeightSearchOptions options;
  options.evaluations = 6;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    LoadSubject s(seed);
    const LeastLoad least = least_load(s.evaluator, s.candidates, kNoOverhead, options);
    ASSERT_TRUE(least.selection.evaluation.feasible);
    EXPECT_LE(least.bytes, s.part_of_peak(1));
    EXPECT_LE(least.selection.evaluation.peak_load, least.bytes);
    EXPECT_LE(to_seconds(least.selection.evaluation.stall()),
              kNoOverhead * to_seconds(s.candidates.compute_time()));
    for (int percent = 30; percent < 100; percent += 5) {
      const Bytes limit = s.part_of_peak(percent / 100.0);
      for (const SwapScore score : kSwapScores) {
        const auto single = select_under_load(s.evaluator, s.candidates, only(score), limit);
        if (single.evaluation.feasible && single.evaluation.stall() == Nanos{0}) {
          EXPECT_LE(least.bytes, limit) << to_string(score);
        }
      }
    }
  }
}

TEST(FastestUnderLoad, IsNeverSlowerThanThePlainSelectionsOfTheScores) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    LoadSubject s(seed);
    for (const double part : {0.9, 0.7, 0.5}) {
      const Bytes limit = s.part_of_peak(part);
      const LoadedSelection fastest = fastest_under_load(s.evaluator, s.candidates, limit);
      for (const SwapScore score : kSwapScores) {
        const auto plain = select_under_load(s.evaluator, s.candidates, only(score), limit);
        if (!plain.evaluation.feasible) continue;
        ASSERT_TRUE(fastest.evaluation.feasible);
        EXPECT_LE(fastest.evaluation.iteration_time, plain.evaluation.iteration_time);
      }
    }
  }
}

TEST(LeastPlainLoad, HasNoOverheadUnderItself) {
  int reduced = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    LoadSubject s(seed);
    WeightSearchOptions options = published_search(1, {});
    options.evaluations = 6;
    const LeastLoad least = least_plain_load(s.evaluator, s.candidates, kNoOverhead, options);
    ASSERT_TRUE(least.selection.evaluation.feasible);
    EXPECT_GE(least.bytes, s.candidates.load_min());
    if (least.bytes == s.part_of_peak(1)) continue;  // nothing found; copies of inputs may stall
    EXPECT_LT(least.bytes, s.part_of_peak(1));
    const Evaluation again =
        s.evaluator.evaluate(least.selection.selection.strategy, {least.bytes});
    ASSERT_TRUE(again.feasible);
    EXPECT_LE(to_seconds(again.stall()), kNoOverhead * to_seconds(s.candidates.compute_time()));
    EXPECT_EQ(least.selection.selection.strategy.hints.size(),
              least.selection.selection.picks.size());
    ++reduced;
  }
  EXPECT_GT(reduced, 0);
}

TEST(LeastLoad, WhenCancelledItIsThePeak) {
  LoadSubject s(3);
  WeightSearchOptions options;
  options.stop = [] { return true; };
  const LeastLoad least = least_load(s.evaluator, s.candidates, kNoOverhead, options);
  EXPECT_EQ(least.bytes, s.part_of_peak(1));
  EXPECT_TRUE(least.selection.selection.picks.empty());
}

}  // namespace
}  // namespace tidepool
