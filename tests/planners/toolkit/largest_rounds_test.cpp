#include "planners/toolkit/largest_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using testing::SubBatchWorkload;

const Machine kMachineOfRounds = testing::byte_a_nanosecond(64);

LargestRounds largest_rounds_of(std::string_view name) {
  return LargestRounds(std::move(*make_planner(name)));
}

PlannerOptions quick() {
  PlannerOptions options;
  options.evaluation_limit = 50;
  return options;
}

Bytes peak_of_rounds(std::int64_t sub_batch) {
  SubBatchWorkload workload;
  const Program& program = **workload.program(sub_batch);
  const AccessIndex index(program);
  return load_profile(program, index, 64, least_workspace_algorithms(program)).peak;
}

TEST(LargestRounds, TakesTheLargestInWhichEverythingFits) {
  for (const std::int64_t sub_batch : {8, 4, 2, 1}) {
    SubBatchWorkload workload;
    LargestRounds planner = largest_rounds_of("none");
    const Budget budget{peak_of_rounds(sub_batch), 0};
    const auto planned = make_plan(planner, workload, kMachineOfRounds, budget, quick());
    ASSERT_TRUE(planned) << planned.error().message;
    EXPECT_EQ(planned->sub_batch(), sub_batch);
    EXPECT_EQ(planned->lowered.plan.planner, "none");
  }
}

TEST(LargestRounds, SmallerOnesAreNotAskedForWhereALargerOneFits) {
  SubBatchWorkload workload;
  LargestRounds planner = largest_rounds_of("none");
  const Budget budget{peak_of_rounds(4), 0};
  ASSERT_TRUE(make_plan(planner, workload, kMachineOfRounds, budget, quick()));
  EXPECT_THAT(workload.asked(), ElementsAre(Key(4), Key(8)));
}

/// The streaming schedule is no plan of the planner's own.
TEST(LargestRounds, EveryPlannerStreamsLessThanWithTheWholeBatch) {
  for (const PlannerInfo& info : planner_list()) {
    SCOPED_TRACE(info.name);
    for (const std::int64_t enough : {8, 4, 2, 1}) {
      SubBatchWorkload workload;
      SubBatchWorkload of_one;
      LargestRounds planner = largest_rounds_of(info.name);
      const Budget budget{peak_of_rounds(enough) * 9 / 10, 0};
      const auto planned = make_plan(planner, workload, kMachineOfRounds, budget, quick());
      if (!planned) {
        EXPECT_FALSE(info.meets_every_budget) << planned.error().message;
        EXPECT_EQ(planned.error().code, ErrorCode::infeasible);
        continue;
      }
      const auto whole =
          make_plan(**make_planner(info.name), of_one, kMachineOfRounds, budget, quick());
      // Some choose rounds by themselves.
      if (whole && !whole->lowered.streaming && whole->sub_batch() == 8) {
        EXPECT_EQ(planned->sub_batch(), 8);
      }
      EXPECT_TRUE(!planned->lowered.streaming || !whole || whole->lowered.streaming);
    }
  }
}

TEST(LargestRounds, WhereNothingFitsTheErrorIsThatOfTheSmallest) {
  SubBatchWorkload workload;
  LargestRounds planner = largest_rounds_of("autoswap");
  const Bytes least = smallest_budget(**workload.program(1), 64).bytes;
  const auto planned = make_plan(planner, workload, kMachineOfRounds, {least - 1, 0}, quick());
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code, ErrorCode::infeasible);
  EXPECT_EQ(planned.error().smallest_feasible, least);
  EXPECT_THAT(planned.error().message, HasSubstr("op '"));
  EXPECT_TRUE(make_plan(planner, workload, kMachineOfRounds, {least, 0}, quick()));
}

}  // namespace
}  // namespace tidepool
