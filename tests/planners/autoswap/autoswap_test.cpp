#include "planners/autoswap/autoswap.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>

#include "check/check.h"
#include "ir/load_profile.h"
#include "planners/none.h"
#include "planning/make_plan.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "support/sanitized.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using testing::large_program;
using testing::mib;
using testing::ms;
using testing::two_mib_a_ms;
using Example = testing::SwapExample;

Result<Planned> plan_with(Planner& planner, const Program& program, const Machine& machine,
                          Budget budget, const PlannerOptions& options = {}) {
  FixedWorkload workload(program);
  return make_plan(planner, workload, machine, budget, options);
}

constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max() / 4;

TEST(AutoSwap, HonoursEveryBudgetFromTheSmallestFeasibleOne) {
  for (std::uint64_t seed = 0; seed < testing::usual_or(8U, 2U); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = large_program(seed);
    const Machine machine = testing::random_machine(seed);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    for (const double factor : {1.0, 1.2, 1.5, 2.0, 3.0}) {
      const auto budget = static_cast<Bytes>(static_cast<double>(least) * factor);
      const auto planned = plan_with(*make_autoswap(), program, machine, {budget, 0});
      ASSERT_TRUE(planned) << planned.error().message;
      EXPECT_LE(planned->lowered.plan.device_bytes(), budget);
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

TEST(AutoSwap, RunsTheAlgorithmsItIsTold) {
  Example e;
  for (Op& op : e.program.ops) op.algorithms.push_back(op.algorithms.front());
  const std::vector<std::int32_t> second(e.program.ops.size(), 1);
  const auto planned =
      plan_with(*make_autoswap({.algorithms = second}), e.program, two_mib_a_ms(), {mib(100), 0});
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(planned->lowered.strategy.algorithms, second);
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
    const Bytes budget = 2 * smallest_budget(program, machine.alignment()).bytes;
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

TEST(AutoSwap, CombinesScoresWhereTheyLeaveOverhead) {
  AutoSwapOptions single;
  single.weight_evaluations = 0;
  int faster = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = large_program(seed);
    const Machine machine = testing::random_machine(seed);
    const Budget budget{smallest_budget(program, machine.alignment()).bytes * 3 / 2, 0};
    const auto alone = plan_with(*make_autoswap(single), program, machine, budget);
    const auto combined = plan_with(*make_autoswap(), program, machine, budget);
    ASSERT_TRUE(alone && combined);
    EXPECT_LE(combined->lowered.iteration_time, alone->lowered.iteration_time);
    faster += combined->lowered.iteration_time < alone->lowered.iteration_time ? 1 : 0;
  }
  EXPECT_GT(faster, 0);
}

TEST(AutoSwap, TheSameSeedGivesTheSamePlan) {
  const Program program = large_program(4);
  const Machine machine = testing::random_machine(4);
  const Budget budget{smallest_budget(program, machine.alignment()).bytes * 3 / 2, 0};
  const auto first = plan_with(*make_autoswap(), program, machine, budget);
  const auto again = plan_with(*make_autoswap(), program, machine, budget);
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->lowered.strategy.gaps, again->lowered.strategy.gaps);
  EXPECT_EQ(first->lowered.iteration_time, again->lowered.iteration_time);
}

TEST(AutoSwap, WhenCancelledItStillGivesAPlan) {
  const Program program = large_program(4);
  const Machine machine = testing::random_machine(4);
  const Budget budget{smallest_budget(program, machine.alignment()).bytes * 3 / 2, 0};
  for (const int allowed : {0, 1, 5, 60}) {
    SCOPED_TRACE(allowed);
    int asked = 0;
    PlannerOptions options;
    options.stop = [&] { return ++asked > allowed; };
    const auto planned = plan_with(*make_autoswap(), program, machine, budget, options);
    ASSERT_TRUE(planned) << planned.error().message;
    EXPECT_LE(planned->lowered.plan.device_bytes(), budget.device);
    EXPECT_LE(asked, allowed + 10) << "it goes on after it was cancelled";
  }
}

TEST(AutoSwap, TakesAnotherThreshold) {
  const Example e;
  AutoSwapOptions small;
  small.smallest = mib(0.5);
  const auto planned = plan_with(*make_autoswap(small), e.program, two_mib_a_ms(), {mib(100), 0});
  ASSERT_TRUE(planned);
  EXPECT_THAT(planned->notes, ::testing::Contains(HasSubstr("of 4 candidates")));
}

TEST(None, WithoutALimitHasNoStalls) {
  const Example e;
  const auto planned = plan_with(*make_none(), e.program, two_mib_a_ms(), {kUnlimited, 0});
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->lowered.iteration_time, ms(70));
  EXPECT_EQ(planned->lowered.plan.device_bytes(), mib(117.5));
}

TEST(None, AnInfeasibleBudgetNamesOneThatThenWorks) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = large_program(seed);
    const Machine machine = testing::random_machine(seed);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    const auto refused = plan_with(*make_none(), program, machine, {least, 0});
    if (refused) continue;  // nothing lives longer than one op
    EXPECT_EQ(refused.error().code, ErrorCode::infeasible);
    EXPECT_THAT(refused.error().message, HasSubstr("autoswap"));
    ASSERT_TRUE(refused.error().smallest_feasible);
    const Bytes named = *refused.error().smallest_feasible;
    EXPECT_GT(named, least);
    const auto planned = plan_with(*make_none(), program, machine, {named, 0});
    ASSERT_TRUE(planned) << planned.error().message;
    EXPECT_LE(planned->lowered.plan.device_bytes(), named);
  }
}

/// Regression: it was said to need 2305843009213693951 B.
TEST(None, SaysWhyAProgramCannotBeLowered) {
  Program program = testing::tiny_training();
  for (Op& op : program.ops) op.device = op.place == OpPlace::device ? 1 : 0;
  Machine machine = two_mib_a_ms();
  machine.spaces.insert(machine.spaces.begin(), machine.spaces.front());
  machine.links = {{0, 2, {1e9, Nanos{0}}, 0},
                   {2, 0, {1e9, Nanos{0}}, 1},
                   {1, 2, {1e9, Nanos{0}}, 2},
                   {2, 1, {1e9, Nanos{0}}, 3}};
  const auto refused = plan_with(*make_none(), program, machine, {mib(1), 0});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("runs on device 1"));
}

TEST(None, SaysWhenTheHostIsTooSmall) {
  const Program program = testing::tiny_training();
  const Machine machine = two_mib_a_ms();
  const auto refused = plan_with(*make_none(), program, machine, {mib(1), 1});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("host budget 1 B"));
  ASSERT_TRUE(refused.error().smallest_feasible);
  const Bytes enough = *refused.error().smallest_feasible;
  EXPECT_TRUE(plan_with(*make_none(), program, machine, {mib(1), enough}));
  EXPECT_FALSE(plan_with(*make_none(), program, machine, {mib(1), enough - 1}));
}

/// Regression: everything fits, and the greedy packers do not see it.
TEST(None, SearchesForAddressesInsideTheBudget) {
  int found = 0;
  constexpr auto kSeeds = testing::usual_or<std::uint64_t>(40, 15);
  for (std::uint64_t seed = 0; seed < kSeeds && found < 3; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    const AccessIndex index(program);
    const Bytes peak =
        load_profile(program, index, machine.alignment(), least_workspace_algorithms(program)).peak;
    PlannerOptions options;
    options.time_limit = Nanos{0};
    if (plan_with(*make_none(), program, machine, {peak, 0}, options)) continue;
    options.time_limit = std::chrono::milliseconds(200);
    const auto planned = plan_with(*make_none(), program, machine, {peak, 0}, options);
    if (!planned) continue;
    ++found;
    EXPECT_LE(planned->lowered.plan.device_bytes(), peak);
    options.evaluation_limit = 1;  // no clock is asked
    const auto repeated = plan_with(*make_none(), program, machine, {peak, 0}, options);
    const auto again = plan_with(*make_none(), program, machine, {peak, 0}, options);
    ASSERT_EQ(repeated.has_value(), again.has_value());
    if (!repeated) continue;
    EXPECT_EQ(repeated->lowered.plan.device_bytes(), again->lowered.plan.device_bytes());
  }
  EXPECT_GT(found, 0);
}

TEST(AutoSwap, WithNoTimeItStillGivesAPlan) {
  const Program program = large_program(4);
  const Machine machine = testing::random_machine(4);
  PlannerOptions options;
  options.time_limit = Nanos{0};
  const Bytes least = smallest_budget(program, machine.alignment()).bytes;
  const auto planned = plan_with(*make_autoswap(), program, machine, {least * 3 / 2, 0}, options);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_THAT(planned->notes, ::testing::Contains(HasSubstr("no selection fits")));
  options.evaluation_limit = 1'000'000;  // no clock is asked
  const auto whole = plan_with(*make_autoswap(), program, machine, {least * 3 / 2, 0}, options);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_LE(whole->lowered.iteration_time, planned->lowered.iteration_time);
}

TEST(None, TheBudgetItNamesIsTheSmallestOneThatWorks) {
  int refusals = 0;
  int smaller_works = 0;
  std::string first;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const Program program = large_program(seed);
    const Machine machine = testing::random_machine(seed);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    const auto refused = plan_with(*make_none(), program, machine, {least, 0});
    if (refused) continue;
    ++refusals;
    const Bytes below = *refused.error().smallest_feasible - machine.alignment();
    PlannerOptions no_search;
    no_search.time_limit = Nanos{0};
    if (plan_with(*make_none(), program, machine, {below, 0}, no_search) && smaller_works++ == 0) {
      first = fmt::format("seed {}: {} B works too", seed, below);
    }
  }
  EXPECT_EQ(smaller_works, 0) << "of " << refusals << "; " << first;
}

}  // namespace
}  // namespace tidepool
