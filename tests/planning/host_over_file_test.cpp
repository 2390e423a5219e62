// Host memory over a file behind it: what make_plan does where a plan needs more of the host than
// there is. Every planner goes through conformance_test.cpp.
#include "planning/host_over_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/at.h"
#include "base/json.h"
#include "bound/fluid.h"
#include "check/check.h"
#include "lower/plan_file.h"
#include "lower/time_plan.h"
#include "planners/auto/auto.h"
#include "planners/autoswap/autoswap.h"
#include "planners/tide/tide.h"
#include "planning/make_plan.h"
#include "schedule/plan_totals.h"
#include "support/attacks.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "support/three_tiers.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr SpaceId kFile = 2;

Machine with_file(const Machine& machine, double bytes_per_second) {
  return with_file_tier(machine, {{bytes_per_second, Nanos{100}},
                                  {bytes_per_second, Nanos{100}},
                                  false,
                                  0,
                                  machine.alignment()});
}

/// A stack: what each op makes is needed again on the way back, the first at last.
Program stack(int depth) {
  using enum AccessMode;
  testing::ProgramBuilder b("stack");
  std::vector<TensorId> tensors;
  for (int i = 0; i < depth; ++i) {
    tensors.push_back(b.tensor("a" + std::to_string(i), 1024));
    std::vector<Access> accesses{{tensors.back(), write}};
    if (i > 0) accesses.push_back({tensors[at(i) - 1], read});
    b.device("forward " + std::to_string(i), accesses, Nanos{2000});
  }
  const TensorId gradient = b.tensor("gradient", 1024);
  for (int i = depth - 1; i >= 0; --i) {
    const AccessMode mode = i == depth - 1 ? write : update;
    b.device("backward " + std::to_string(i), {{tensors[at(i)], read}, {gradient, mode}},
             Nanos{2000});
  }
  return b.build();
}

Result<Planned> plan(const Program& program, const Machine& machine, const Budget& budget) {
  FixedWorkload workload(program);
  PlannerOptions options;
  options.evaluation_limit = 300;
  return make_plan(*make_autoswap(), workload, machine, budget, options);
}

std::string text_of(const Program& program, const Machine& machine, const Plan& plan) {
  PlanFile file;
  file.program = program;
  file.machine = machine;
  file.strategy = keep_everything(program, AccessIndex(program), chosen_algorithms(program, plan));
  file.plan = plan;
  return to_json(file).dump();
}

TEST(FileTier, WhereTheHostIsEnoughThePlanIsTheOneWithoutAFile) {
  const Program program = stack(12);
  const Machine two = testing::byte_a_nanosecond(64);
  const Machine three = with_file(two, 1e9);
  const auto without = plan(program, two, {5 * 1024, 0});
  ASSERT_TRUE(without) << without.error().message;
  const Bytes needed = without->lowered.plan.host_bytes();
  ASSERT_GT(needed, 0);
  auto with = plan(program, three, {5 * 1024, needed});
  ASSERT_TRUE(with) << with.error().message;
  ASSERT_EQ(with->lowered.plan.arenas.size(), 3u);
  EXPECT_EQ(with->lowered.plan.arenas[2].bytes, 0);
  with->lowered.plan.arenas.pop_back();
  EXPECT_EQ(text_of(program, two, with->lowered.plan),
            text_of(program, two, without->lowered.plan));
}

TEST(FileTier, AFastFileMakesUpForTheHostAndASlowOneCostsWhatItsCopiesTake) {
  const Program program = stack(12);
  const Machine two = testing::byte_a_nanosecond(64);
  const auto unlimited = plan(program, two, {5 * 1024, 0});
  ASSERT_TRUE(unlimited);
  const Budget budget{5 * 1024, unlimited->lowered.plan.host_bytes() / 2};
  const auto fast = plan(program, with_file(two, 4e9), budget);
  ASSERT_TRUE(fast) << fast.error().message;
  EXPECT_EQ(fast->lowered.iteration_time, unlimited->lowered.iteration_time);
  EXPECT_LE(fast->lowered.plan.host_bytes(), budget.host);
  EXPECT_GT(fast->lowered.plan.arenas[kFile].bytes, 0);
  const auto slow = plan(program, with_file(two, 1e8), budget);
  ASSERT_TRUE(slow) << slow.error().message;
  EXPECT_GT(slow->lowered.iteration_time, fast->lowered.iteration_time);
}

/// Without a file. Searches steer by the device's bytes: what swaps is faster here, and it alone
/// was found.
TEST(HostBudget, WhatTheHostCannotHoldIsMadeAgain) {
  const Program program = stack(12);
  const Machine machine = testing::byte_a_nanosecond(64);
  const auto by_auto = [&](Bytes host, Nanos time_limit) {
    FixedWorkload workload(program);
    PlannerOptions options;
    options.evaluation_limit = 300;
    options.time_limit = time_limit;
    return make_plan(*make_auto(), workload, machine, {5 * 1024, host}, options);
  };
  const auto any = by_auto(0, Nanos::max());
  ASSERT_TRUE(any) << any.error().message;
  const Bytes half = any->lowered.plan.host_bytes() / 2;
  ASSERT_GT(half, 0);
  Nanos iteration_time{};
  for (const Nanos limit : {Nanos::max(), Nanos{std::chrono::seconds(100)}, Nanos{1}}) {
    const auto less = by_auto(half, limit);
    ASSERT_TRUE(less) << less.error().message;
    // The limit of evaluations holds, and no clock.
    if (iteration_time == Nanos{}) iteration_time = less->lowered.iteration_time;
    EXPECT_EQ(less->lowered.iteration_time, iteration_time);
    EXPECT_LE(less->lowered.plan.host_bytes(), half);
    EXPECT_GT(totals_of(program, less->lowered.plan).recomputed_ops, 0);
    // As long as it takes on this machine, not on one that it was made for.
    EXPECT_EQ(less->lowered.iteration_time,
              time_plan(program, less->lowered.plan, machine).iteration_time);
    EXPECT_TRUE(check(program, less->lowered.plan, check_limits(machine, {5 * 1024, half})));
  }
}

/// By the clock, what was named was sometimes the least that was found and sometimes a tenth more.
TEST(HostBudget, WhatIsNamedAsEnoughDependsOnNoClockWhereEvaluationsAreLimited) {
  const Program program = stack(12);
  for (const Machine& machine :
       {testing::byte_a_nanosecond(64), with_file(testing::byte_a_nanosecond(64), 1e9)}) {
    std::vector<Bytes> named;
    for (const Nanos limit : {Nanos::max(), Nanos{1}}) {
      FixedWorkload workload(program);
      PlannerOptions options;
      options.evaluation_limit = 300;
      options.time_limit = limit;
      options.may.recompute = false;
      const auto refused = make_plan(*make_auto(), workload, machine, {5 * 1024, 1}, options);
      ASSERT_FALSE(refused);
      EXPECT_TRUE(refused.error().of_host);
      named.push_back(refused.error().smallest_feasible.value_or(0));
    }
    EXPECT_GT(named[0], 1);
    EXPECT_EQ(named[0], named[1]);
  }
}

/// The bound once knew of the links of the device only: plans that wait for a slow disk were far
/// above it.
TEST(FileTier, NoPlanIsFasterThanTheBoundAndASlowDiskBringsThemTogether) {
  Program program = stack(12);
  program.ops[0].random = true;  // otherwise the host has all values of the iteration before
  const Machine machine = with_file(testing::byte_a_nanosecond(64), 1e8);
  const AccessIndex index(program);
  const auto algorithms = least_workspace_algorithms(program);
  for (const Bytes host : {1, 2, 3}) {
    SCOPED_TRACE(host);
    const Budget budget{5 * 1024, host * 1024};
    const auto made = plan(program, machine, budget);
    ASSERT_TRUE(made) << made.error().message;
    const FluidBound bound =
        fluid_bound({program, index, machine, algorithms, false, budget.host}, budget.device);
    ASSERT_TRUE(bound.feasible);
    const Nanos overhead = made->lowered.iteration_time - compute_time(program, algorithms);
    EXPECT_LE(bound.overhead, overhead);
    EXPECT_GT(bound.overhead * 3, overhead);
  }
}

TEST(FileTier, WhatIsAwayLongestGoesToTheFile) {
  const Program program = stack(12);
  const Machine machine = with_file(testing::byte_a_nanosecond(64), 1e9);
  const auto unlimited = plan(program, testing::byte_a_nanosecond(64), {5 * 1024, 0});
  ASSERT_TRUE(unlimited);
  const auto planned = plan(program, machine, {5 * 1024, unlimited->lowered.plan.host_bytes() / 2});
  ASSERT_TRUE(planned) << planned.error().message;
  // The first tensors are away longest, the last of those that leave come back soon.
  TensorId last_in_file = kNone;
  TensorId last_away = kNone;
  bool first_in_file = false;
  for (const Instruction& x : planned->lowered.plan.steady.instructions) {
    if (x.kind != InstructionKind::copy) continue;
    const Placement& to = planned->lowered.plan.placements[at(x.to)];
    if (to.space == 1) last_away = std::max(last_away, to.tensor);
    if (to.space != kFile) continue;
    last_in_file = std::max(last_in_file, to.tensor);
    first_in_file |= to.tensor == 0;
  }
  EXPECT_TRUE(first_in_file);
  EXPECT_LT(last_in_file, last_away);
}

TEST(FileTier, AHostBudgetThatIsTooSmallNamesOneThatWorks) {
  for (std::uint64_t seed = 0; seed < testing::some<std::uint64_t>(3, 6); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed, {5, 4096, 2});
    const Machine machine = testing::with_random_tier(testing::random_machine(seed), seed);
    const Bytes device = smallest_budget(program, machine.alignment()).bytes * 3 / 2;
    const auto refused = plan(program, machine, {device, 1});
    if (refused) continue;  // it needs nothing of the host
    ASSERT_EQ(refused.error().code, ErrorCode::infeasible) << refused.error().message;
    ASSERT_TRUE(refused.error().smallest_feasible) << refused.error().message;
    EXPECT_TRUE(refused.error().of_host);
    const Budget budget{device, *refused.error().smallest_feasible};
    const auto planned = plan(program, machine, budget);
    ASSERT_TRUE(planned) << planned.error().message;
    EXPECT_TRUE(check(program, planned->lowered.plan, check_limits(machine, budget)));
  }
}

TEST(FileTier, ALimitOfTheFileHoldsAndOneThatIsTooSmallIsNamed) {
  const Program program = stack(12);
  const Machine machine = with_file(testing::byte_a_nanosecond(64), 1e9);
  // All but a few tensors have to be in the file at the same time.
  const Budget budget{5 * 1024, 2 * 1024};
  const auto planned = plan(program, machine, budget);
  ASSERT_TRUE(planned) << planned.error().message;
  const Bytes needed = planned->lowered.plan.arenas[kFile].bytes;
  ASSERT_GT(needed, 1024);
  Budget limited = budget;
  limited.others[kFile] = 1024;
  const auto refused = plan(program, machine, limited);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::infeasible);
  EXPECT_THAT(refused.error().message, HasSubstr("are enough"));
  limited.others[kFile] = needed;
  const auto again = plan(program, machine, limited);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_LE(again->lowered.plan.arenas[kFile].bytes, needed);
}

// The plan that is found without the file is taken where it is faster.
TEST(FileTier, AFileMakesNoPlanSlower) {
  for (std::uint64_t seed = 0; seed < testing::some<std::uint64_t>(3, 6); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed, {5, 4096, 2});
    const Machine two = testing::random_machine(seed);
    const Machine three = with_file(two, 1e7);
    const Bytes device = smallest_budget(program, two.alignment()).bytes * 3 / 2;
    const auto unlimited = plan(program, two, {device, 0});
    ASSERT_TRUE(unlimited);
    for (const Bytes part : {2, 4}) {
      const Budget budget{device, unlimited->lowered.plan.host_bytes() / part};
      if (budget.host == 0) continue;
      const auto without = plan(program, two, budget);
      if (!without) continue;
      const auto with = plan(program, three, budget);
      ASSERT_TRUE(with) << with.error().message;
      EXPECT_LE(with->lowered.iteration_time, without->lowered.iteration_time);
    }
  }
}

}  // namespace
}  // namespace tidepool
