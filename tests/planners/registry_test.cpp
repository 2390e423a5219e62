#include "planners/registry.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "planning/make_plan.h"
#include "sim/simulate.h"
#include "support/attacks.h"
#include "support/program_builder.h"
#include "support/repeatable.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;

TEST(PlannerRegistry, ListsDistinctNamesWithDescriptions) {
  std::set<std::string_view> names;
  for (const PlannerInfo& info : planner_list()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.description.empty()) << info.name;
  }
  EXPECT_TRUE(names.contains("none"));
  EXPECT_TRUE(names.contains("autoswap"));
}

TEST(PlannerRegistry, AnUnknownNameIsAUsageErrorThatListsTheKnownOnes) {
  for (const char* name : {"", "None", "autoswap "}) {
    const auto planner = make_planner(name);
    ASSERT_FALSE(planner);
    EXPECT_EQ(planner.error().code, ErrorCode::usage);
    EXPECT_THAT(planner.error().message, HasSubstr("none, autoswap"));
  }
}

TEST(PlannerRegistry, APlannerThatThisBuildGoesWithoutNamesThePackageThatBringsIt) {
  for (const std::string_view name : {"dqn", "dqn-swap"}) {
    const auto named = [&](const auto& one) { return one.name == name; };
    ASSERT_NE(std::ranges::any_of(planner_list(), named),
              std::ranges::any_of(missing_planners(), named))
        << name;
    if (std::ranges::any_of(planner_list(), named)) continue;
    const auto planner = make_planner(name);
    ASSERT_FALSE(planner);
    EXPECT_EQ(planner.error().code, ErrorCode::usage);
    EXPECT_THAT(planner.error().message, HasSubstr("libtorch-dev"));
  }
}

TEST(PlannerRegistry, EveryPlannerMakesAProvedPlanUnderItsOwnName) {
  for (const PlannerInfo& info : planner_list()) {
    const auto planner = make_planner(info.name);
    ASSERT_TRUE(planner);
    FixedWorkload workload(testing::random_program(2));
    const Budget unlimited{std::numeric_limits<Bytes>::max() / 4, 0};
    const auto planned = make_plan(**planner, workload, testing::random_machine(2), unlimited, {});
    ASSERT_TRUE(planned) << planned.error().message;
    EXPECT_EQ(planned->lowered.plan.planner, info.name);
  }
}

TEST(PlannerRegistry, EveryPlannerPredictsWhatTheSimulatorSees) {
  for (const PlannerInfo& info : planner_list()) {
    for (std::uint64_t seed = 0; seed < testing::some(3U, 8U); ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", info.name, seed));
      const Program program = testing::large_program(seed);
      const Machine machine = testing::random_machine(seed);
      const Bytes least = smallest_budget(program, machine.alignment()).bytes;
      FixedWorkload workload(program);
      const auto planned = make_plan(*info.make(), workload, machine, {least * 3 / 2, 0},
                                     testing::repeatable(seed, 100, info.name));
      if (!planned) {
        EXPECT_EQ(info.name, "none") << planned.error().message;
        continue;
      }
      const Simulation simulated = simulate(program, planned->lowered.plan, machine, 8);
      EXPECT_EQ(simulated.iteration_time, planned->lowered.iteration_time);
    }
  }
}

TEST(PlannerRegistry, APlannerObjectCanBeUsedAgain) {
  const auto planner = make_planner("autoswap");
  ASSERT_TRUE(planner);
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Program program = testing::random_program(seed);
    FixedWorkload workload(program);
    const Budget budget{2 * smallest_budget(program, 64).bytes, 0};
    EXPECT_TRUE(make_plan(**planner, workload, testing::random_machine(seed), budget, {}));
  }
}

TEST(FixedWorkload, HasOneSize) {
  FixedWorkload workload(testing::tiny_training());
  EXPECT_EQ(workload.sub_batch(), 1);
  EXPECT_TRUE(workload.program(1));
  const auto other = workload.program(2);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::usage);
}

TEST(MakePlan, AnInfeasibleBudgetIsPassedOn) {
  const Program program = testing::tiny_training();
  FixedWorkload workload(program);
  const auto planner = make_planner("autoswap");
  const Bytes least = smallest_budget(program, 64).bytes;
  const auto planned =
      make_plan(**planner, workload, testing::byte_a_nanosecond(64), {least - 1, 0}, {});
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code, ErrorCode::infeasible);
  EXPECT_EQ(planned.error().smallest_feasible, least);
}

TEST(ChooseAlgorithms, FollowsThePolicy) {
  Program p = testing::tiny_training();
  p.ops[2].algorithms.push_back({"small and slow", Nanos{9000}, 0, true});
  EXPECT_EQ(choose_algorithms(p, AlgorithmPolicy::fastest)[2], 0);
  EXPECT_EQ(choose_algorithms(p, AlgorithmPolicy::heuristic)[2], 0);
  EXPECT_EQ(choose_algorithms(p, AlgorithmPolicy::least_workspace)[2], 1);
  auto& listed = p.ops[2].algorithms;
  listed.insert(listed.begin(), {"does not repeat its bits", Nanos{1}, 0, false});
  EXPECT_EQ(choose_algorithms(p, AlgorithmPolicy::heuristic)[2], 1);
}

}  // namespace
}  // namespace tidepool
