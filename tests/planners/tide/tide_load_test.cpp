#include "planners/tide/tide_load.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/load_profile.h"
#include "support/random_program.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

TEST(LoadSearch, IsNeverWorseThanWhatItIsGiven) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    Lowering lowering(program, machine);
    const auto algorithms = least_workspace_algorithms(program);
    const Bytes limit = smallest_budget(program, machine.alignment()).bytes * 3 / 2;
    const Strategy away = lowering.everything_away(algorithms);
    for (const bool compact : {false, true}) {
      LoadSearch search(lowering, algorithms);
      const Evaluation given = lowering.evaluator().evaluate(away, {limit});
      if (!given.feasible) continue;
      search.add_seed(away);
      LoadSearchOptions options;
      options.allowance = Allowance::of(2000);
      options.compact = compact;
      ASSERT_TRUE(search.run(limit, options));
      EXPECT_LE(search.iteration_time(), given.iteration_time);
      EXPECT_GE(search.iteration_time(), search.compute_time());
    }
  }
}

/// What a search has found, as one text.
std::string found_by(Lowering& lowering, Bytes limit, std::int64_t evaluations, int threads) {
  LoadSearch search(lowering, least_workspace_algorithms(lowering.program()), threads);
  LoadSearchOptions options;
  options.allowance = Allowance::of(evaluations);
  if (!search.run(limit, options)) return "nothing";
  std::string text;
  for (std::size_t i = 0; i < search.found(); ++i) {
    text += std::to_string(search.iteration_time(i).count()) + " " +
            std::to_string(search.lead(i).count()) + "\n";
  }
  return text;
}

TEST(LoadSearch, FindsTheSameOnAnyNumberOfThreads) {
  const std::uint64_t programs = testing::usual_or(4, 1);
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    Lowering lowering(program, machine);
    const Bytes limit = smallest_budget(program, machine.alignment()).bytes * 5 / 4;
    const std::string one = found_by(lowering, limit, 1500, 1);
    for (const int threads : {2, 4}) EXPECT_EQ(found_by(lowering, limit, 1500, threads), one);
  }
}

TEST(LoadSearch, WhatIsPassedOverComesLast) {
  int others = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    Lowering lowering(program, machine);
    const Bytes limit = smallest_budget(program, machine.alignment()).bytes * 5 / 4;
    LoadSearch search(lowering, least_workspace_algorithms(program));
    LoadSearchOptions options;
    options.allowance = Allowance::of(2000);
    if (!search.run(limit, options) || search.found() < 2) continue;
    const std::vector<Nanos> fastest{search.iteration_time(0)};
    const Nanos second = search.iteration_time(1);
    options.passed_over = fastest;
    options.allowance = Allowance::of(2000);
    ASSERT_TRUE(search.run(limit, options));
    EXPECT_LE(search.iteration_time(0), second);
    EXPECT_NE(search.iteration_time(0), fastest[0]);
    bool passed = false;
    for (std::size_t i = 0; i < search.found(); ++i) {
      const bool one = std::ranges::count(fastest, search.iteration_time(i)) > 0;
      EXPECT_TRUE(one || !passed) << i;
      passed = passed || one;
    }
    ++others;
  }
  EXPECT_GT(others, 0);
}

TEST(LoadSearch, MoreEvaluationsAreNeverWorse) {
  const std::uint64_t programs = testing::usual_or(6, 2);
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    Lowering lowering(program, machine);
    const Bytes limit = smallest_budget(program, machine.alignment()).bytes * 5 / 4;
    Nanos before = Nanos::max();
    for (const std::int64_t evaluations : {100, 400, 1500}) {
      LoadSearch search(lowering, least_workspace_algorithms(program));
      LoadSearchOptions options;
      options.seed = seed;
      options.allowance = Allowance::of(evaluations);
      if (!search.run(limit, options)) continue;
      EXPECT_LE(search.iteration_time(), before) << evaluations;
      before = search.iteration_time();
    }
    EXPECT_LT(before, Nanos::max());
  }
}

}  // namespace
}  // namespace tidepool
