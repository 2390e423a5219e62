// Scripts: the waits that follow from an order and addresses. Values on a device are looked at in
// tests/runtime/scripts_test.cpp.
#include "lower/scripted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/at.h"
#include "check/check.h"
#include "lower/time_plan.h"
#include "sim/simulate.h"
#include "support/program_builder.h"
#include "support/random_plan.h"
#include "support/sanitized.h"
#include "support/script_of.h"
#include "support/spaces.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::random_plan;
using testing::RandomPlan;
using testing::script_of;

constexpr auto kSeeds = testing::usual_or<std::uint64_t>(150, 30);

MATCHER_P3(waits_for, stream, index, iteration, "") {
  return arg.stream == stream && arg.index == index && arg.iteration == iteration;
}

CheckLimits limits_of(const RandomPlan& c, const Plan& plan) {
  return {c.budget.device, plan.host_bytes(), c.machine.alignment(), c.machine.duplex()};
}

Plan made(const Program& program, const Script& script) {
  auto plan = plan_of_script(program, script);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? std::move(*plan) : Plan{};
}

TEST(Scripted, PlansOfRandomScriptsAreProved) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const auto c = random_plan(seed);
    ASSERT_TRUE(c);
    const Plan plan = made(c->program, script_of(c->lowered.plan));
    const auto proof = check(c->program, plan, limits_of(*c, plan));
    ASSERT_TRUE(proof) << proof.error().message;
    EXPECT_EQ(plan.entry.instructions.size(), c->lowered.plan.entry.instructions.size());
    EXPECT_EQ(plan.exit.instructions.size(), c->lowered.plan.exit.instructions.size());
  }
}

TEST(Scripted, PlansForTwoDevicesAreProvedToo) {
  for (std::uint64_t seed = 0; seed < kSeeds / 3; ++seed) {
    SCOPED_TRACE(seed);
    auto a = random_plan(seed * 2);
    auto b = random_plan(seed * 2 + 1);
    ASSERT_TRUE(a && b);
    const testing::SpacedPlan p = testing::TwoDevices({a->program, a->lowered.plan, a->machine},
                                                      {b->program, b->lowered.plan, b->machine})
                                      .make();
    const Plan plan = made(p.program, script_of(p.plan));
    const auto proof = check(p.program, plan, testing::tight_limits(plan, p.machine));
    ASSERT_TRUE(proof) << proof.error().message;
  }
}

// What a wait orders is a conflict; so each that is taken away has to be missed.
TEST(Scripted, NoWaitIsSuperfluous) {
  std::size_t removed = 0;
  testing::RandomShape small;
  small.most_layers = 3;
  for (std::uint64_t seed = 0; seed < testing::usual_or<std::uint64_t>(25, 5); ++seed) {
    SCOPED_TRACE(seed);
    const auto c = random_plan(seed, small);
    ASSERT_TRUE(c);
    Plan plan = made(c->program, script_of(c->lowered.plan));
    for (std::size_t i = 0; i < plan.steady.instructions.size(); ++i) {
      auto& waits = plan.steady.instructions[i].waits;
      for (std::size_t w = 0; w < waits.size(); ++w, ++removed) {
        const std::vector<Wait> all = waits;
        waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(w));
        EXPECT_FALSE(check(c->program, plan, limits_of(*c, plan))) << i << ": wait " << w;
        waits = all;
      }
    }
  }
  EXPECT_GT(removed, 100u);
}

// Where the lowering made addresses that need waits of their own, it has to find the same.
TEST(Scripted, AnIterationTakesNoLongerThanWithTheWaitsOfLowering) {
  for (std::uint64_t seed = 0; seed < kSeeds / 2; ++seed) {
    SCOPED_TRACE(seed);
    const auto c = random_plan(seed);
    ASSERT_TRUE(c);
    const Plan plan = made(c->program, script_of(c->lowered.plan));
    EXPECT_LE(long_run(c->program, plan, c->machine).iteration_time,
              long_run(c->program, c->lowered.plan, c->machine).iteration_time);
  }
}

TEST(Scripted, TimesAreThoseOfTheSimulator) {
  for (std::uint64_t seed = 0; seed < kSeeds / 2; ++seed) {
    SCOPED_TRACE(seed);
    const auto c = random_plan(seed);
    ASSERT_TRUE(c);
    const Plan plan = made(c->program, script_of(c->lowered.plan));
    const TimedPlan timed = time_plan(c->program, plan, c->machine);
    constexpr int kIterations = 28;
    const Simulation simulation = simulate(c->program, plan, c->machine, kIterations);
    EXPECT_EQ(timed.iteration_time, long_run(c->program, plan, c->machine).iteration_time);
    const Nanos base = simulation.iteration_end[kIterations - 2];
    ASSERT_EQ(timed.steps.size(), plan.steady.instructions.size());
    for (std::size_t s = 0; s < timed.steps.size(); ++s) {
      ASSERT_EQ(simulation.iterations.back()[s].start - base, timed.steps[s].start);
      ASSERT_EQ(simulation.iterations.back()[s].end - base, timed.steps[s].end);
    }
  }
}

/// An op makes x, which goes out and is overwritten by y; x comes back to another place.
class SmallScript : public ::testing::Test {
 protected:
  void SetUp() override {
    using enum AccessMode;
    testing::ProgramBuilder b;
    const TensorId x = b.tensor("x", 8);
    const TensorId y = b.tensor("y", 8);
    b.device("make x", {{x, write}}, Nanos{10});
    b.device("make y", {{y, write}}, Nanos{10});
    b.device("use", {{x, read}, {y, read}}, Nanos{10});
    b.host("see", {{x, read}});
    program_ = b.build();
    script_.arenas = {{SpaceKind::device, 16, 1}, {SpaceKind::host, 8, 1}};
    script_.streams = {{0, StreamKind::compute},
                       {0, StreamKind::copy},
                       {0, StreamKind::copy},
                       {0, StreamKind::host}};
    script_.placements = {{x, 0, 0, 8}, {y, 0, 0, 8}, {x, 1, 0, 8}, {x, 0, 8, 8}};
    script_.items = {op(0, {0}),    copy(1, 0, 2), op(1, {1}),
                     copy(2, 2, 3), op(2, {3, 1}), op(3, {2})};
    script_.items.back().stream = 3;
  }

  static ScriptItem op(OpId id, std::vector<PlacementId> operands) {
    ScriptItem item;
    item.op = id;
    item.operands = std::move(operands);
    return item;
  }
  static ScriptItem copy(StreamId stream, PlacementId from, PlacementId to) {
    ScriptItem item;
    item.kind = InstructionKind::copy;
    item.stream = stream;
    item.from = from;
    item.to = to;
    return item;
  }
  [[nodiscard]] std::string refusal() const {
    const auto plan = plan_of_script(program_, script_);
    return plan ? "made" : plan.error().message;
  }

  Program program_;
  Script script_;
};

TEST_F(SmallScript, WaitsAreThoseThatAddressesAndValuesNeed) {
  const Plan plan = made(program_, script_);
  const auto waits = [&](std::size_t i) { return plan.steady.instructions[i].waits; };
  // "use" has read y there: stream order. The copy out of the iteration before follows from the
  // copy in that "use" waited for.
  EXPECT_THAT(waits(0), IsEmpty());
  // The host's bytes were read by the copy in, which "use" waited for, and by "see".
  EXPECT_THAT(waits(1), ElementsAre(waits_for(0, 0, 0), waits_for(3, 5, -1)));
  EXPECT_THAT(waits(2), ElementsAre(waits_for(1, 1, 0)));
  // The place was read by "use" of the iteration before, which "make x" came after.
  EXPECT_THAT(waits(3), ElementsAre(waits_for(1, 1, 0)));
  EXPECT_THAT(waits(4), ElementsAre(waits_for(2, 3, 0)));
  EXPECT_THAT(waits(5), ElementsAre(waits_for(1, 1, 0)));
  EXPECT_TRUE(check(program_, plan, {16, 8}));
}

TEST_F(SmallScript, ABarrierIsAWaitUnlessItFollows) {
  script_.items[3].after = {2, 0};
  script_.items[5].after = {3};
  script_.items[4].after = {0, 1};
  const Plan plan = made(program_, script_);
  const auto waits = [&](std::size_t i) { return plan.steady.instructions[i].waits; };
  // "make y" comes after the copy out.
  EXPECT_THAT(waits(3), ElementsAre(waits_for(0, 2, 0)));
  EXPECT_THAT(waits(4), ElementsAre(waits_for(2, 3, 0)));
  EXPECT_THAT(waits(5), ElementsAre(waits_for(2, 3, 0)));
}

TEST_F(SmallScript, WhatDoesNotExistIsRefused) {
  EXPECT_EQ(refusal(), "made");
  const Script good = script_;
  script_.items[1].after = {1};
  EXPECT_THAT(refusal(), HasSubstr("item 1: a barrier behind item 1"));
  script_ = good;
  script_.items[1].to = 4;
  EXPECT_THAT(refusal(), HasSubstr("item 1: a copy without its two placements"));
  script_ = good;
  script_.items[2].stream = 4;
  EXPECT_THAT(refusal(), HasSubstr("item 2: stream 4"));
  script_ = good;
  script_.items[2].operands.clear();
  EXPECT_THAT(refusal(), HasSubstr("op 'make y' has not one placement for each access"));
  script_ = good;
  script_.items[2].algorithm = 1;
  EXPECT_THAT(refusal(), HasSubstr("op 'make y' has no algorithm 1"));
  script_ = good;
  script_.items.push_back(script_.items.back());
  EXPECT_THAT(refusal(), HasSubstr("item 6: host op 'see' comes behind 'see'"));
  script_ = good;
  script_.arenas.pop_back();
  EXPECT_THAT(refusal(), HasSubstr("no arena of host memory"));
}

TEST_F(SmallScript, WhatStaysTakenIsHeldUntilItIsReleased) {
  program_.tensors[1].released_at = 2;  // y, until "use", though only "make y" has it
  program_.ops[2].accesses.pop_back();
  script_.items[4].operands.pop_back();
  // Somebody takes its bytes on another stream.
  script_.placements.push_back({0, 0, 0, 8});
  script_.items.push_back(copy(2, 2, 4));
  const Plan plan = made(program_, script_);
  EXPECT_THAT(plan.steady.instructions[6].waits, ElementsAre(waits_for(0, 4, 0)));
}

TEST_F(SmallScript, WhereATensorHasOnePlaceItLeavesThatFirst) {
  // "make y" reads x at its first place after the copy out; the second place is free all the time.
  program_.ops[1].accesses.push_back({0, AccessMode::read});
  script_.items[2].operands.push_back(0);
  script_.arenas[0].bytes = 24;
  script_.placements[1].offset = 16;
  EXPECT_THAT(made(program_, script_).steady.instructions[3].waits,
              ElementsAre(waits_for(1, 1, 0)));
  program_.single_placements = true;
  const Plan plan = made(program_, script_);
  EXPECT_THAT(plan.steady.instructions[3].waits,
              ElementsAre(waits_for(0, 2, 0), waits_for(1, 1, 0)));
  EXPECT_TRUE(check(program_, plan, {24, 8}));
}

}  // namespace
}  // namespace tidepool
