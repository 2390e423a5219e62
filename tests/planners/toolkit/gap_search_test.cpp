#include "planners/toolkit/gap_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "ir/load_profile.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

/// No search here ends by its deadline, on a machine however slow.
constexpr auto kLong = std::chrono::minutes(10);
constexpr std::int64_t kEvaluations = 3000;

struct SearchSubject {
  explicit SearchSubject(std::uint64_t seed)
      : program(testing::random_program(seed)),
        machine(testing::random_machine(seed)),
        lowering(program, machine),
        algorithms(least_workspace_algorithms(program)) {}

  [[nodiscard]] std::size_t gaps() const { return lowering.index().gaps().size(); }
  [[nodiscard]] Bytes limit() const {
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    const Bytes peak =
        load_profile(program, lowering.index(), machine.alignment(), algorithms).peak;
    return (least + peak) / 2;
  }

  Program program;
  Machine machine;
  Lowering lowering;
  std::vector<std::int32_t> algorithms;
};

TEST(GapSearch, ImprovesOnTheBestOfManyRandomStatesAndSaysWhatItsStrategyTakes) {
  int better = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    SearchSubject subject(seed);
    const Bytes limit = subject.limit();
    GapSearch search(subject.lowering, subject.algorithms);
    Random random(seed);
    Nanos best = Nanos::max();
    std::vector<AwayGaps> states;
    for (int i = 0; i < 100; ++i) {
      AwayGaps& away = states.emplace_back(subject.gaps());
      for (char& a : away) a = random.below(2) == 0 ? 1 : 0;
      const Evaluation e = subject.lowering.evaluator().evaluate(search.strategy(away), {limit});
      if (e.feasible) best = std::min(best, e.iteration_time);
    }
    GapSearchOptions options;
    options.allowance = Clock::now() + kLong;
    options.stop = [&search] { return search.evaluations() > kEvaluations; };
    ASSERT_EQ(search.run(limit, states, options), best != Nanos::max());
    EXPECT_LE(search.time(), best);
    better += search.time() < best ? 1 : 0;
    const Evaluation e =
        subject.lowering.evaluator().evaluate(search.strategy(search.best()), {limit});
    EXPECT_TRUE(e.feasible);
    EXPECT_EQ(e.iteration_time, search.time());
  }
  EXPECT_GT(better, 0);
}

TEST(GapSearch, MovesTriggersWhereItMayAndIsFasterSomewhere) {
  int faster = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    SearchSubject subject(seed);
    const Bytes limit = subject.limit();
    const AwayGaps all(subject.gaps(), kCopied);
    std::array<Nanos, 2> times{};
    for (const bool triggers : {false, true}) {
      GapSearch search(subject.lowering, subject.algorithms);
      GapSearchOptions options;
      options.allowance = Allowance::of(kEvaluations);
      options.triggers = triggers;
      if (!search.run(limit, {all}, options)) continue;
      search.set_triggers(search.best_triggers());
      const Strategy& found = search.strategy(search.best());
      EXPECT_TRUE(triggers || found.hints.empty());
      const Evaluation e = subject.lowering.evaluator().evaluate(found, {limit});
      EXPECT_TRUE(e.feasible);
      EXPECT_EQ(e.iteration_time, search.time());
      times[triggers ? 1 : 0] = search.time();
    }
    faster += times[1] < times[0] ? 1 : 0;
  }
  EXPECT_GT(faster, 0);
}

TEST(GapSearch, ChoosesAlgorithmsWhereItMayAndSaysWhich) {
  int chosen = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    SearchSubject subject(seed);
    const Bytes limit = subject.limit();
    const AlgorithmSpace space(subject.program, subject.machine.alignment(), limit,
                               subject.algorithms);
    const AwayGaps away(subject.gaps(), 1);
    GapSearchOptions options;
    options.allowance = Allowance::of(kEvaluations);
    options.trials = kEvaluations / 4;
    GapSearch fixed(subject.lowering, subject.algorithms);
    GapSearch free(subject.lowering, subject.algorithms, {}, &space);
    if (!fixed.run(limit, {away}, options)) continue;
    ASSERT_TRUE(free.run(limit, {away}, options));
    EXPECT_LE(free.time(), fixed.time());
    EXPECT_GE(free.time(), free.compute_time());
    Strategy found = free.strategy(free.best());
    found.algorithms = free.best_algorithms();
    const Evaluation e = subject.lowering.evaluator().evaluate(found, {limit});
    EXPECT_TRUE(e.feasible);
    EXPECT_EQ(e.iteration_time, free.time());
    chosen += free.best_algorithms() != subject.algorithms;
  }
  EXPECT_GT(chosen, 2);
}

TEST(GapSearch, FittingAlgorithmsStayWithinTheLimitBesideTheirState) {
  int others = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    SearchSubject subject(seed);
    const Bytes limit = subject.limit();
    const AlgorithmSpace space(subject.program, subject.machine.alignment(), limit,
                               subject.algorithms);
    GapSearch search(subject.lowering, subject.algorithms, {}, &space);
    const AwayGaps away(subject.gaps(), 1);
    if (search.time_of(away, limit, Nanos::max()) == Nanos::max()) continue;
    const auto fitting = search.fitting_algorithms(away, limit);
    search.set_algorithms(fitting);
    EXPECT_LT(search.time_of(away, limit, Nanos::max()), Nanos::max());
    EXPECT_LE(compute_time(subject.program, fitting),
              compute_time(subject.program, subject.algorithms));
    others += fitting != subject.algorithms;
  }
  EXPECT_GT(others, 2);
}

TEST(GapSearch, DoesNotEndWithTimesThatArePassedOver) {
  int others = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    SearchSubject subject(seed);
    const Strategy away = subject.lowering.everything_away(subject.algorithms);
    AwayGaps start;
    for (const Decision d : away.gaps) start.push_back(d == Decision::keep ? kStays : kCopied);
    GapSearchOptions options;
    options.seed = seed;
    options.allowance = Allowance::of(kEvaluations);
    std::vector<Nanos> found;
    for (int run = 0; run < 4; ++run) {
      std::ranges::sort(found);
      options.passed_over = found;
      GapSearch search(subject.lowering, subject.algorithms);
      if (!search.run(subject.limit(), {start}, options)) break;
      EXPECT_EQ(std::ranges::count(found, search.time()), 0);
      others += found.empty() ? 0 : 1;
      found.push_back(search.time());
    }
  }
  EXPECT_GT(others, 0);
}

TEST(GapSearch, EndsWhenNothingStalls) {
  SearchSubject subject(1);
  GapSearch search(subject.lowering, subject.algorithms);
  GapSearchOptions options;
  options.allowance = Clock::now() + kLong;
  constexpr Bytes kPlenty = Bytes{1} << 40;
  ASSERT_TRUE(search.run(kPlenty, {AwayGaps(subject.gaps(), 0)}, options));
  EXPECT_EQ(search.time(), search.compute_time());
  EXPECT_EQ(search.evaluations(), 1);
}

TEST(GapSearch, SaysWhenNoStartFits) {
  SearchSubject subject(1);
  GapSearch search(subject.lowering, subject.algorithms);
  GapSearchOptions options;
  options.allowance = Clock::now() + kLong;
  EXPECT_FALSE(search.run(1, {AwayGaps(subject.gaps(), 0)}, options));
}

TEST(GapSearch, SaysBeforeWhichOpsAStateStalls) {
  int stalling = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    SearchSubject subject(seed);
    GapSearch search(subject.lowering, subject.algorithms);
    const AwayGaps away(subject.gaps(), 1);
    const Nanos time = search.time_of(away, subject.limit(), Nanos::max());
    if (time == Nanos::max()) continue;
    const Evaluation e =
        subject.lowering.evaluator().evaluate(search.strategy(away), {subject.limit()});
    EXPECT_EQ(time, e.iteration_time);
    Nanos sum{0};
    for (const Nanos stall : search.delays()) sum += stall;
    // Before the first op a stall is between iterations, and not in the list.
    EXPECT_LE(sum, e.stall());
    stalling += sum > Nanos{0} ? 1 : 0;
  }
  EXPECT_GT(stalling, 0);
}

TEST(GapSearch, CancellingKeepsTheBestSeed) {
  SearchSubject subject(2);
  GapSearch search(subject.lowering, subject.algorithms);
  GapSearchOptions options;
  options.allowance = Clock::now() + kLong;
  options.stop = [] { return true; };
  const AwayGaps start(subject.gaps(), 1);
  ASSERT_TRUE(search.run(subject.limit(), {start}, options));
  EXPECT_EQ(search.best(), start);
}

}  // namespace
}  // namespace tidepool
