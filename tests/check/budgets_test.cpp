// Every space of a machine has a budget of its own, and a plan file says them all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/at.h"
#include "base/json.h"
#include "check/check.h"
#include "lower/budget.h"
#include "lower/memory_sizes.h"
#include "lower/plan_file.h"
#include "support/random_plan.h"
#include "support/spaces.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::random_plan;
using testing::SpacedPlan;

/// Two devices (spaces 0 and 1), their host (2) and files (3).
Machine four_spaces() {
  Machine machine;
  machine.name = "four";
  machine.spaces = {{SpaceKind::device, 0, 64},
                    {SpaceKind::device, 0, 64},
                    {SpaceKind::host, 0, 64},
                    {SpaceKind::file, 0, 64}};
  machine.links = {{0, 2, {}, 0}, {2, 0, {}, 1}, {1, 2, {}, 2},
                   {2, 1, {}, 3}, {2, 3, {}, 4}, {3, 2, {}, 5}};
  return machine;
}

TEST(Budgets, AreOfEveryDeviceAndOfTheHost) {
  const Machine machine = four_spaces();
  ASSERT_EQ(inconsistency(machine), "");
  EXPECT_THAT(space_budgets(machine, {100, 200}), ElementsAre(100, 100, 200, kNoSpaceLimit));
  EXPECT_THAT(space_budgets(machine, {100, 0}),
              ElementsAre(100, 100, kNoSpaceLimit, kNoSpaceLimit));
}

TEST(Budgets, OfOtherSpacesMayDiffer) {
  EXPECT_THAT(space_budgets(four_spaces(), {100, 200, {{1, 50}, {3, 400}}}),
              ElementsAre(100, 50, 200, 400));
  const CheckLimits limits = check_limits(four_spaces(), {100, 200, {{1, 50}}});
  EXPECT_EQ(limits.spaces[1].bytes, 50);
  EXPECT_EQ(limits.spaces[1].kind, SpaceKind::device);
}

TEST(Budgets, AreInsideTheMemoryOfTheirSpace) {
  Machine machine = four_spaces();
  machine.spaces[1].bytes = 80;
  machine.spaces[3].bytes = 300;
  // One number for all devices: a smaller one has its own memory.
  const auto capped = within_memory(machine, {100, 0});
  ASSERT_TRUE(capped);
  EXPECT_THAT(space_budgets(machine, *capped), ElementsAre(100, 80, kNoSpaceLimit, 300));
  const auto above = within_memory(machine, {100, 0, {{1, 100}}});
  ASSERT_FALSE(above) << "a number of its own";
  EXPECT_EQ(above.error().code, ErrorCode::usage);
  EXPECT_THAT(above.error().message, HasSubstr("the device 1 budget of 100 B"));
  EXPECT_THAT(above.error().message, HasSubstr("machine 'four': 80 B"));
  const auto file = within_memory(machine, {100, 0, {{1, 80}, {3, 301}}});
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("the file budget of 301 B"));
  // Where there is no limit, the memory is one.
  const auto within = within_memory(machine, {kNoDeviceLimit, 0});
  ASSERT_TRUE(within);
  EXPECT_THAT(space_budgets(machine, *within), ElementsAre(kNoDeviceLimit, 80, kNoSpaceLimit, 300));
  ASSERT_TRUE(within_memory(machine, {60, 0}));
}

/// What the plan takes, no byte more.
Budget tight_budget(const SpacedPlan& p) {
  Budget budget{p.plan.arenas[0].bytes, p.plan.arenas[at(p.machine.host())].bytes};
  for (SpaceId s = 1; s < std::ssize(p.plan.arenas); ++s) {
    if (s != p.machine.host()) budget.others[s] = p.plan.arenas[at(s)].bytes;
  }
  return budget;
}

/// Over two devices of different sizes, or with a file below the host that is used.
SpacedPlan plan_over(bool devices) {
  for (std::uint64_t seed = 1;; ++seed) {
    auto a = random_plan(seed * 2);
    auto b = random_plan(seed * 2 + 1);
    SpacedPlan p = devices
                       ? testing::TwoDevices({a->program, a->lowered.plan, a->machine},
                                             {b->program, b->lowered.plan, b->machine})
                             .make()
                       : testing::FileTier(a->program, a->lowered.plan, a->machine, seed).make();
    const bool differ = p.plan.arenas[0].bytes != p.plan.arenas[1].bytes;
    if (devices ? differ : p.plan.arenas[2].bytes > 0) return p;
  }
}

TEST(Budgets, OfEachSpaceAreProved) {
  for (const bool devices : {true, false}) {
    const SpacedPlan p = plan_over(devices);
    const Budget budget = tight_budget(p);
    const auto proof = check(p.program, p.plan, check_limits(p.machine, budget));
    ASSERT_TRUE(proof) << proof.error().message;
    for (SpaceId s = 0; s < std::ssize(p.machine.spaces); ++s) {
      Budget less = budget;
      --(s == 0 ? less.device : s == p.machine.host() ? less.host : less.others.at(s));
      const auto refused = check(p.program, p.plan, check_limits(p.machine, less));
      ASSERT_FALSE(refused);
      EXPECT_THAT(refused.error().message,
                  AllOf(HasSubstr("(1)"), HasSubstr("exceeds the " + space_name(p.machine, s))));
    }
  }
}

TEST(Budgets, OfOtherSpacesAreInThePlanFile) {
  const SpacedPlan p = plan_over(true);
  const Budget budget = tight_budget(p);
  PlanFile file;
  file.program = p.program;
  file.machine = p.machine;
  file.device_budget = budget.device;
  file.host_budget = budget.host;
  file.strategy.gaps.assign(AccessIndex(p.program).gaps().size(), Decision::keep);
  file.strategy.algorithms.assign(p.program.ops.size(), 0);
  file.plan = p.plan;
  EXPECT_FALSE(to_json(file).contains("other_budgets"));
  file.other_budgets = budget.others;
  const Json json = to_json(file);
  const auto read = read_plan(json.dump(), "p.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->budget(), budget);

  const auto refusal = [&](const char* text) {
    Json wrong = json;
    wrong["other_budgets"] = Json::parse(text);
    const auto refused = read_plan(wrong.dump(), "p.json");
    return refused ? "accepted" : refused.error().message;
  };
  EXPECT_THAT(refusal(R"([{"space": 0, "bytes": 1}])"), HasSubstr("other_budgets[0].space"));
  EXPECT_THAT(refusal(R"([{"space": 3, "bytes": 1}])"), HasSubstr("other_budgets[0].space"));
  EXPECT_THAT(refusal(R"([{"space": 2, "bytes": 1}])"), HasSubstr("'host_budget'"));
  EXPECT_THAT(refusal(R"([{"space": 1, "bytes": 1}, {"space": 1, "bytes": 1}])"),
              HasSubstr("other_budgets[1].space"));
}

}  // namespace
}  // namespace tidepool
