#include "planners/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ir/load_profile.h"
#include "planning/make_plan.h"
#include "support/attacks.h"
#include "support/random_program.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

Result<Planned> plan(const Program& program, const Machine& machine, Bytes budget,
                     std::uint64_t seed, PlannerOptions options = {}) {
  FixedWorkload workload(program);
  options.seed = seed;
  return make_plan(*make_random(), workload, machine, {budget, 0}, options);
}

TEST(RandomPlanner, HonoursEveryBudgetFromTheSmallestFeasibleOne) {
  for (std::uint64_t seed = 0; seed < testing::some(testing::usual_or(4U, 3U), 30U); ++seed) {
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    for (const Bytes budget : {least, least * 5 / 4, least * 2}) {
      const auto planned = plan(program, machine, budget, seed);
      ASSERT_TRUE(planned) << "seed " << seed << ": " << planned.error().message;
      EXPECT_LE(planned->lowered.plan.device_bytes(), budget);
    }
    const auto refused = plan(program, machine, least - 1, seed);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().smallest_feasible, least);
  }
}

TEST(RandomPlanner, MixesAllDecisions) {
  std::set<Decision> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    const auto planned =
        plan(program, machine, smallest_budget(program, machine.alignment()).bytes * 2, seed);
    ASSERT_TRUE(planned);
    seen.insert(planned->lowered.strategy.gaps.begin(), planned->lowered.strategy.gaps.end());
  }
  EXPECT_EQ(seen.size(), 4U);
}

/// Regression: it asked no clock.
TEST(RandomPlanner, WithoutTimeNothingIsDrawn) {
  const Program program = testing::random_program(5);
  const Machine machine = testing::random_machine(5);
  const Bytes budget = smallest_budget(program, machine.alignment()).bytes * 2;
  PlannerOptions no_time;
  no_time.time_limit = Nanos{0};
  const auto planned = plan(program, machine, budget, 1, no_time);
  ASSERT_TRUE(planned) << planned.error().message;
  const auto& gaps = planned->lowered.strategy.gaps;
  EXPECT_EQ(std::count(gaps.begin(), gaps.end(), Decision::recompute), 0);
  const auto drawn = plan(program, machine, budget, 1)->lowered.strategy.gaps;
  EXPECT_NE(gaps, drawn);
}

TEST(RandomPlanner, TheSeedDecides) {
  const Program program = testing::random_program(5);
  const Machine machine = testing::random_machine(5);
  const Bytes budget = smallest_budget(program, machine.alignment()).bytes * 2;
  const auto gaps = [&](std::uint64_t seed) {
    return plan(program, machine, budget, seed)->lowered.strategy.gaps;
  };
  EXPECT_EQ(gaps(1), gaps(1));
  EXPECT_NE(gaps(1), gaps(2));
}

}  // namespace
}  // namespace tidepool
