#include "planners/published/modnn/modnn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/check.h"
#include "ir/load_profile.h"
#include "planners/published/modnn/task_memory.h"
#include "planning/make_plan.h"
#include "sim/simulate.h"
#include "support/odd_program.h"
#include "support/random_program.h"
#include "support/sanitized.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::SubBatchWorkload;

Result<Planned> try_to_plan(Workload& workload, const Machine& machine, Bytes budget,
                            const ModnnOptions& modnn = {}, const MayDecide& may = {}) {
  PlannerOptions options;
  options.may = may;
  options.values.set("modnn_weights_leave", modnn.weights_leave);
  options.values.set("modnn_one_stream", modnn.one_data_stream);
  return make_plan(*make_modnn(), workload, machine, {budget, 0}, options);
}

Planned plan(Workload& workload, const Machine& machine, Bytes budget,
             const ModnnOptions& modnn = {}, const MayDecide& may = {}) {
  auto planned = try_to_plan(workload, machine, budget, modnn, may);
  EXPECT_TRUE(planned) << planned.error().message;
  return planned ? std::move(*planned) : Planned{};
}

void expect_right(const Planned& planned, Workload& workload, const Machine& machine,
                  Bytes budget) {
  const Program& program = **workload.program(planned.sub_batch());
  const Lowered& lowered = planned.lowered;
  const auto proof = check(program, lowered.plan, check_limits(machine, {budget, 0}));
  EXPECT_TRUE(proof) << proof.error().message;
  EXPECT_EQ(lowered.iteration_time, long_run(program, lowered.plan, machine).iteration_time);
  EXPECT_LE(lowered.plan.device_bytes(), budget);
}

// Whatever the program is like, at any budget in which anything can run.
TEST(Modnn, PlansOfRandomProgramsAreProved) {
  constexpr auto kPrograms = testing::usual_or<std::uint64_t>(120, 25);
  int planned_itself = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    testing::OddShape recorded;
    recorded.recorded = seed % 6 == 1;
    Program program = seed % 3 == 0 ? testing::random_program(seed)
                                    : testing::odd_program(seed, testing::HostUse::plain, recorded);
    const Machine machine = testing::random_machine(seed);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    const AccessIndex index(program);
    const Bytes peak =
        load_profile(program, index, machine.alignment(), fastest_algorithms(program)).peak;
    FixedWorkload workload(std::move(program));
    for (const ModnnOptions& options :
         {ModnnOptions{}, ModnnOptions{true, false}, ModnnOptions{false, true}}) {
      for (const Bytes budget : {least, (3 * least + peak) / 4, (least + peak) / 2, 2 * peak}) {
        if (budget < least) continue;
        SCOPED_TRACE(fmt::format("seed {} in {} B", seed, budget));
        const auto planned = try_to_plan(workload, machine, budget, options);
        if (!planned) {
          // Bytes that may not move lie in the way.
          EXPECT_TRUE(recorded.recorded) << planned.error().message;
          EXPECT_EQ(planned.error().code, ErrorCode::infeasible);
          continue;
        }
        expect_right(*planned, workload, machine, budget);
        planned_itself += planned->lowered.streaming ? 0 : 1;
      }
    }
  }
  EXPECT_GT(planned_itself, static_cast<int>(kPrograms) * 11);
}

// The promise of section 5.1.1: whoever gives as much as equation 7 says gets a schedule.
TEST(Modnn, AnyBudgetFromTheLowerBoundOnIsEnoughWithWeightsOnTheDevice) {
  for (std::uint64_t seed = 0; seed < testing::usual_or<std::uint64_t>(60, 15); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    const Bytes bound = modnn::bound_with_weights(program, machine.alignment()).bytes;
    FixedWorkload workload(program);
    for (const Bytes budget : {bound, bound + 64, bound * 5 / 4}) {
      const Planned planned = plan(workload, machine, budget);
      EXPECT_FALSE(planned.lowered.streaming);
      EXPECT_THAT(planned.notes, Not(Contains(HasSubstr("weights leave"))));
      const auto& lowered = planned.lowered;
      for (const PlacementId id : lowered.plan.boundary) {
        EXPECT_EQ(lowered.plan.kind_of(id), SpaceKind::device);
      }
    }
  }
}

// Others go on from what it decides.
TEST(Modnn, WhatItDecidesCanBeLowered) {
  for (std::uint64_t seed = 0; seed < testing::usual_or<std::uint64_t>(60, 15); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    const Bytes budget = modnn::bound_with_weights(program, machine.alignment()).bytes;
    Lowering lowering(program, machine);
    FixedWorkload workload(program);
    for (const ModnnOptions& options : {ModnnOptions{}, ModnnOptions{true, false}}) {
      const Planned planned = plan(workload, machine, budget, options);
      LowerOptions as_it_is;
      as_it_is.allow_streaming = false;
      const auto lowered = lowering.lower(planned.lowered.strategy, {kNoDeviceLimit, 0}, as_it_is);
      EXPECT_TRUE(lowered) << lowered.error().message;
    }
  }
}

class ModnnInRounds : public ::testing::Test {
 protected:
  Bytes bound(std::int64_t size) {
    return modnn::bound_with_weights(**workload_.program(size), 64).bytes;
  }
  SubBatchWorkload workload_;
  Machine machine_ = testing::byte_a_nanosecond(64);
};

TEST_F(ModnnInRounds, LessMemoryMeansSmallerRounds) {
  std::int64_t last = SubBatchWorkload::kBatch;
  for (Bytes budget = 128 << 10; budget >= bound(1); budget = budget * 4 / 5) {
    const Planned planned = plan(workload_, machine_, budget);
    expect_right(planned, workload_, machine_, budget);
    EXPECT_LE(planned.sub_batch(), last);
    EXPECT_FALSE(planned.lowered.streaming);
    last = planned.sub_batch();
  }
  EXPECT_EQ(last, 1);
  EXPECT_EQ(plan(workload_, machine_, 128 << 10).sub_batch(), SubBatchWorkload::kBatch);
}

TEST_F(ModnnInRounds, WeightsLeaveWhereTheyHaveTo) {
  const Planned planned = plan(workload_, machine_, bound(1) - 64);
  expect_right(planned, workload_, machine_, bound(1) - 64);
  EXPECT_THAT(planned.notes, Contains(HasSubstr("weights leave")));
  EXPECT_FALSE(planned.lowered.streaming);
}

TEST_F(ModnnInRounds, ABudgetForNothingNamesWhatTheSmallestRoundsNeed) {
  const Bytes least = smallest_budget(**workload_.program(1), 64).bytes;
  const auto refused = try_to_plan(workload_, machine_, least - 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::infeasible);
  EXPECT_EQ(refused.error().smallest_feasible, least);
  EXPECT_THAT(refused.error().message, HasSubstr("in rounds of 1"));
  expect_right(plan(workload_, machine_, least), workload_, machine_, least);
}

TEST_F(ModnnInRounds, AGivenSizeIsKept) {
  MayDecide may;
  may.sub_batch = false;
  const Planned planned = plan(workload_, machine_, bound(8), {}, may);
  EXPECT_EQ(planned.sub_batch(), 8);
  EXPECT_THAT(plan(workload_, machine_, bound(8)).sub_batch(), ::testing::Lt(8));
}

TEST_F(ModnnInRounds, WhereNothingMayLeaveRoundsAreWhatIsLeft) {
  MayDecide may;
  may.swap = false;
  const Bytes whole = 128 << 10;
  EXPECT_EQ(plan(workload_, machine_, whole, {}, may).sub_batch(), 8);
  const Planned planned = plan(workload_, machine_, 24 << 10, {}, may);
  EXPECT_LT(planned.sub_batch(), 8);
  expect_right(planned, workload_, machine_, 24 << 10);
}

TEST_F(ModnnInRounds, GivenAlgorithmsAreKept) {
  MayDecide may;
  may.algorithms = false;
  const Planned planned = plan(workload_, machine_, 128 << 10, {}, may);
  EXPECT_EQ(planned.lowered.strategy.algorithms,
            least_workspace_algorithms(**workload_.program(planned.sub_batch())));
  EXPECT_EQ(plan(workload_, machine_, 128 << 10).lowered.strategy.algorithms,
            fastest_algorithms(**workload_.program(8)));
}

TEST_F(ModnnInRounds, AHostThatIsTooSmallIsNamed) {
  MayDecide may;
  may.sub_batch = false;
  PlannerOptions options;
  options.may = may;
  const Bytes device = bound(8);
  const auto free = make_plan(*make_modnn(), workload_, machine_, {device, 0}, options);
  ASSERT_TRUE(free);
  const Bytes host = free->lowered.plan.host_bytes();
  EXPECT_TRUE(make_plan(*make_modnn(), workload_, machine_, {device, host}, options));
  const auto refused = make_plan(*make_modnn(), workload_, machine_, {device, 64}, options);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().of_host);
  ASSERT_TRUE(refused.error().smallest_feasible);
  EXPECT_TRUE(make_plan(*make_modnn(), workload_, machine_,
                        {device, *refused.error().smallest_feasible}, options));
}

}  // namespace
}  // namespace tidepool
