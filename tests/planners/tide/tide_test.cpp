#include "planners/tide/tide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "ir/load_profile.h"
#include "lower/plan_file.h"
#include "planners/autoswap/autoswap.h"
#include "planning/make_plan.h"
#include "support/attacks.h"
#include "support/random_program.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

Result<Planned> plan(Planner& planner, const Program& program, const Machine& machine, Bytes budget,
                     const PlannerOptions& options = {}) {
  FixedWorkload workload(program);
  return make_plan(planner, workload, machine, {budget, 0}, options);
}

constexpr testing::RandomShape kTideShape{5, 4096, 2};

std::uint64_t most_programs() { return testing::some<std::uint64_t>(testing::usual_or(8, 3), 20); }

/// By evaluations: where autoswap takes half of a time limit, tide does not wait for its end.
PlannerOptions quick() {
  PlannerOptions options;
  options.evaluation_limit = 300;
  return options;
}

TEST(Tide, HonoursEveryBudgetAndIsNeverSlowerThanAutoswap) {
  int faster = 0;
  for (std::uint64_t seed = 0; seed < most_programs(); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed, kTideShape);
    const Machine machine = testing::random_machine(seed);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    for (const Bytes budget : {least, least * 5 / 4, least * 3 / 2}) {
      const auto tide = plan(*make_tide(), program, machine, budget, quick());
      const auto autoswap = plan(*make_autoswap(), program, machine, budget);
      ASSERT_TRUE(tide) << tide.error().message;
      ASSERT_TRUE(autoswap);
      EXPECT_LE(tide->lowered.plan.device_bytes(), budget);
      EXPECT_LE(tide->lowered.iteration_time, autoswap->lowered.iteration_time);
      faster += tide->lowered.iteration_time < autoswap->lowered.iteration_time ? 1 : 0;
    }
  }
  EXPECT_GT(faster, 0) << "the search finds something";
}

TEST(Tide, AnInfeasibleBudgetNamesTheSmallestFeasibleOne) {
  const Program program = testing::random_program(3);
  const Machine machine = testing::random_machine(3);
  const Bytes least = smallest_budget(program, machine.alignment()).bytes;
  const auto refused = plan(*make_tide(), program, machine, least - 1, quick());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().smallest_feasible, least);
}

/// Gaps of one version: the host gets it once.
TEST(Tide, AValueThatLeavesTwiceIsCopiedOutOnce) {
  bool seen = false;
  for (std::uint64_t seed = 0; seed < 20 && !seen; ++seed) {
    const Program program = testing::random_program(seed, kTideShape);
    const Machine machine = testing::random_machine(seed);
    const Bytes budget = smallest_budget(program, machine.alignment()).bytes * 5 / 4;
    const auto planned = plan(*make_tide(), program, machine, budget, quick());
    ASSERT_TRUE(planned);
    const auto& gaps = planned->lowered.strategy.gaps;
    seen = std::find(gaps.begin(), gaps.end(), Decision::drop) != gaps.end();
  }
  EXPECT_TRUE(seen);
}

PlannerOptions of_evaluations(std::int64_t evaluations, std::uint64_t seed) {
  PlannerOptions options;
  options.evaluation_limit = evaluations;
  options.seed = seed;
  return options;
}

TEST(Tide, MoreEvaluationsAreNeverWorseForTheSameSeed) {
  const std::uint64_t programs = testing::usual_or(6, 2);
  int better = 0;
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed, kTideShape);
    const Machine machine = testing::random_machine(seed);
    const Bytes budget = smallest_budget(program, machine.alignment()).bytes * 5 / 4;
    Nanos before = Nanos::max();
    for (const std::int64_t evaluations : {300, 2'000}) {
      const auto planned =
          plan(*make_tide(), program, machine, budget, of_evaluations(evaluations, seed));
      ASSERT_TRUE(planned) << planned.error().message;
      EXPECT_LE(planned->lowered.iteration_time, before) << evaluations;
      better += planned->lowered.iteration_time < before && before != Nanos::max() ? 1 : 0;
      before = planned->lowered.iteration_time;
    }
  }
  EXPECT_GT(better, 0) << "the search finds something";
}

TEST(Tide, EvaluationsGiveTheSamePlanOnAnyNumberOfThreads) {
  const std::uint64_t programs = testing::usual_or(4, 2);
  int searched = 0;
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed, kTideShape);
    const Machine machine = testing::random_machine(seed);
    const Bytes budget = smallest_budget(program, machine.alignment()).bytes * 5 / 4;
    std::vector<std::string> plans;
    for (const int threads : {1, 2, 4}) {
      const auto planned =
          plan(*make_tide(threads), program, machine, budget, of_evaluations(1'500, seed));
      ASSERT_TRUE(planned) << planned.error().message;
      PlanFile file;
      file.program = program;
      file.machine = machine;
      file.iteration_time = planned->lowered.iteration_time;
      file.strategy = planned->lowered.strategy;
      file.plan = planned->lowered.plan;
      plans.push_back(to_json(file).dump());
      searched += planned->notes.front().find("the search") != std::string::npos ? 1 : 0;
    }
    for (const std::string& other : plans) EXPECT_EQ(other, plans.front());
  }
  EXPECT_GT(searched, 0) << "the search finds something";
}

TEST(Tide, CancellingKeepsTheBestSoFar) {
  const Program program = testing::random_program(2);
  const Machine machine = testing::random_machine(2);
  PlannerOptions options;
  options.stop = [] { return true; };
  const Bytes budget = smallest_budget(program, machine.alignment()).bytes * 5 / 4;
  EXPECT_TRUE(plan(*make_tide(), program, machine, budget, options));
}

}  // namespace
}  // namespace tidepool
