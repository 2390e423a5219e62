#include "planners/toolkit/gap_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/at.h"
#include "ir/load_profile.h"
#include "planners/toolkit/candidate_gaps.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

/// No search here ends by its deadline, on a machine however slow.
constexpr auto kLong = std::chrono::minutes(10);
constexpr std::int64_t kEvaluations = testing::usual_or(1500, 400);

struct SearchSubject {
  explicit SearchSubject(std::uint64_t seed)
      : program(testing::random_program(seed, {6, 4096, 2})),
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
  int faster = 0;
  int slower = 0;
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
    faster += free.time() < fixed.time() ? 1 : 0;
    slower += free.time() > fixed.time() ? 1 : 0;
    EXPECT_GE(free.time(), free.compute_time());
    Strategy found = free.strategy(free.best());
    found.algorithms = free.best_algorithms();
    const Evaluation e = subject.lowering.evaluator().evaluate(found, {limit});
    EXPECT_TRUE(e.feasible);
    EXPECT_EQ(e.iteration_time, free.time());
    chosen += free.best_algorithms() != subject.algorithms;
  }
  EXPECT_GT(chosen, 2);
  // As many evaluations in a larger space may once end with less.
  EXPECT_GE(faster, testing::usual_or(5, 3));
  EXPECT_LE(slower, 1);
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

/// Few values whose sizes differ much, read once or twice.
Program few_values(std::uint64_t seed) {
  using enum AccessMode;
  constexpr int kValues = 10;
  constexpr int kOps = 26;
  constexpr std::array<Bytes, 5> kMebibytes{200, 64, 16, 4, 1};
  Random random(seed);
  testing::ProgramBuilder b("few values");
  std::array<std::vector<Access>, kOps> reads;
  std::vector<TensorId> values;
  for (int i = 0; i < kValues; ++i) {
    const Bytes bytes = kMebibytes[random.below(kMebibytes.size())] << 20;
    values.push_back(b.tensor("x" + std::to_string(i), bytes));
    const auto read_at = [&] { return static_cast<std::size_t>(i) + 3 + random.below(14); };
    const std::size_t first = read_at();
    reads[first].push_back({values.back(), read});
    const std::size_t second = read_at();
    if (random.below(2) == 0 && second != first) reads[second].push_back({values.back(), read});
  }
  for (std::size_t op = 0; op < kOps; ++op) {
    std::vector<Access>& accesses = reads[op];
    if (op < values.size()) accesses.push_back({values[op], write});
    const auto time = static_cast<Nanos::rep>(random.below(20'000'000));
    b.device("op" + std::to_string(op), accesses, Nanos{random.below(4) == 0 ? 0 : time});
  }
  return b.build();
}

/// The least time of all states in which each gap is copied or stays.
Nanos best_of_all(GapSearch& search, std::span<const GapId> gaps, std::size_t count, Bytes limit) {
  Nanos best = Nanos::max();
  for (std::uint64_t state = 0; state < std::uint64_t{1} << gaps.size(); ++state) {
    AwayGaps away(count, kStays);
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      if ((state >> i & 1) != 0) away[at(gaps[i])] = kCopied;
    }
    best = std::min(best, search.time_of(away, limit, Nanos::max()));
  }
  return best;
}

TEST(GapSearch, FindsTheBestOfAllStatesOfFewValuesOfVeryDifferentSizes) {
  Machine machine = *find_machine("gtx1080ti");
  machine.to_host().bytes_per_second /= 4;  // large values are away for less than their copies
  machine.to_device().bytes_per_second /= 4;
  constexpr std::int64_t kFew = 250;
  int searched = 0;
  int found = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Program program = few_values(seed);
    const Lowering lowering(program, machine);
    const auto algorithms = least_workspace_algorithms(program);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    const auto load = load_profile(program, lowering.index(), machine.alignment(), algorithms);
    const Bytes limit = least + (load.peak - least) / 8;
    auto gaps = candidate_gaps(program, lowering.index(), 0);
    std::erase_if(gaps, [&](GapId g) { return lowering.index().gaps()[at(g)].dead; });
    if (gaps.size() > 13) continue;  // twice as many states with each
    GapSearch search(lowering, algorithms);
    const std::size_t count = lowering.index().gaps().size();
    const Nanos best = best_of_all(search, gaps, count, limit);
    AwayGaps all_away(count, kStays);
    for (const GapId g : gaps) all_away[at(g)] = kCopied;
    GapSearchOptions options;
    options.allowance = Allowance::of(kFew);
    for (options.seed = 1; options.seed <= 5; ++options.seed) {
      ASSERT_TRUE(search.run(limit, {all_away}, options));
      EXPECT_GE(search.time(), best);
      found += search.time() == best ? 1 : 0;
      ++searched;
    }
  }
  ASSERT_EQ(searched, 50);
  EXPECT_GE(found, 45);  // 29 without exchanges
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
  constexpr Bytes plenty = Bytes{1} << 40;
  ASSERT_TRUE(search.run(plenty, {AwayGaps(subject.gaps(), 0)}, options));
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
