// The smallest budgets that are named: each is enough, and one alignment less is not. Ten thousand
// programs of each were tried with TIDEPOOL_ATTACKS=10000.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planners/none.h"
#include "planning/budget.h"
#include "planning/make_plan.h"
#include "planning/planner_work.h"
#include "support/attacks.h"
#include "support/odd_program.h"
#include "support/random_program.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;

/// Layers, and ops at random with tensors that may not move.
Program program_of(std::uint64_t seed) {
  if (seed % 2 == 0) {
    Program p = testing::random_program(seed, {3, 512, 2});
    return seed % 4 == 0 ? testing::with_homes(std::move(p), seed) : p;
  }
  return testing::odd_program(seed, testing::HostUse::plain, {9, 15, true});
}

TEST(SmallestBudget, OfTheStreamingScheduleIsEnoughAndOneAlignmentLessIsNot) {
  int with_holes = 0;
  for (std::uint64_t seed = 0; seed < testing::attacks(2'000); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = program_of(seed);
    const Machine machine = testing::random_machine(seed);
    Lowering lowering(program, machine);
    const SmallestBudget least = smallest_to_stream(program, machine);
    with_holes += least.holes > 0;
    const Strategy away = lowering.everything_away(least_workspace_algorithms(program));
    if (const auto refused = lowering.lower(away, {0, 0}); !refused) {
      ASSERT_EQ(refused.error().code, ErrorCode::infeasible) << refused.error().message;
      EXPECT_EQ(refused.error().smallest_feasible, least.bytes) << refused.error().message;
      EXPECT_THAT(refused.error().message, HasSubstr(std::to_string(least.bytes) + " B"));
    }
    const auto lowered = lowering.lower(away, {least.bytes, 0});
    EXPECT_TRUE(lowered) << lowered.error().message;
    if (least.bytes == 0) continue;
    const auto less = lowering.lower(away, {least.bytes - machine.alignment(), 0});
    ASSERT_FALSE(less);
    EXPECT_EQ(less.error().smallest_feasible, least.bytes) << less.error().message;
  }
  RecordProperty("with_holes", with_holes);
}

Result<Planned> keep_all(const Program& program, const Machine& machine, Bytes device) {
  FixedWorkload workload(program);
  PlannerOptions options;
  options.evaluation_limit = 1;  // no clock is asked
  return make_plan(*make_none(), workload, machine, {device, 0}, options);
}

/// What it named was found without the search that its plans have.
TEST(SmallestBudget, OfNoneIsEnoughAndOneAlignmentLessIsNot) {
  int above_the_load = 0;
  for (std::uint64_t seed = 0; seed < testing::attacks(1'000); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = program_of(seed);
    const Machine machine = testing::random_machine(seed);
    const Bytes peak = unlimited_peak(program, machine.alignment());
    if (peak == 0) continue;
    const auto refused = keep_all(program, machine, 0);
    ASSERT_FALSE(refused);
    ASSERT_EQ(refused.error().code, ErrorCode::infeasible) << refused.error().message;
    ASSERT_TRUE(refused.error().smallest_feasible);
    const Bytes least = *refused.error().smallest_feasible;
    above_the_load += least > peak;
    const auto planned = keep_all(program, machine, least);
    ASSERT_TRUE(planned) << planned.error().message;
    const auto less = keep_all(program, machine, least - machine.alignment());
    ASSERT_FALSE(less);
    EXPECT_EQ(less.error().smallest_feasible, least);
    if (seed % 8 > 0) continue;
    // Below what any planner needs it is the same.
    PlannerOptions options;
    options.evaluation_limit = 1;
    const SmallestBudget any = smallest_to_stream(program, machine);
    const Error unmet{ErrorCode::infeasible, "unmet", any.bytes};
    Subject subject;
    subject.profile = {"here", program, machine};
    EXPECT_EQ(for_planner("none", unmet, subject, options).smallest_feasible, least);
  }
  RecordProperty("above_the_load", above_the_load);
}

/// Smaller rounds take less here: the least is that of the smallest, whichever budget is refused.
TEST(SmallestBudget, OfNoneIsTheLeastOfAllRoundsOnOffer) {
  testing::SubBatchWorkload workload;
  const Machine machine = testing::random_machine(1);
  PlannerOptions options;
  options.evaluation_limit = 1;
  const auto keep = [&](Bytes device) {
    return make_plan(*make_none(), workload, machine, {device, 0}, options);
  };
  const auto refused = keep(0);
  ASSERT_FALSE(refused);
  const Bytes least = *refused.error().smallest_feasible;
  for (const std::int64_t size : workload.sub_batches()) {
    const auto alone = keep_all(**workload.program(size), machine, 0);
    EXPECT_GE(*alone.error().smallest_feasible, least) << size;
  }
  const auto planned = keep(least);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_LT(planned->sub_batch(), testing::SubBatchWorkload::kBatch);
  const auto less = keep(least - machine.alignment());
  ASSERT_FALSE(less);
  EXPECT_EQ(less.error().smallest_feasible, least);
}

}  // namespace
}  // namespace tidepool
