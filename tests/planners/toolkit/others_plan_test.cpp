#include "planners/toolkit/others_plan.h"

#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

TEST(OthersPlan, IsWhatThePlannerHasOrSaysWhyThereIsNone) {
  const Program program = testing::large_program(1);
  const Machine machine = testing::random_machine(1);
  FixedWorkload workload(program);
  const Bytes least = smallest_budget(program, machine.alignment()).bytes;
  const Budget budget{2 * least, 0};
  for (const PlannerInfo& info : planner_list()) {
    if (info.name != "autoswap" && info.name != "none") continue;
    OthersPlan other;
    other.planner = &info;
    other.options.may.sub_batch = other.options.may.algorithms = false;
    auto context = PlannerContext::make(workload, machine, budget, other.options);
    ASSERT_TRUE(context);
    other.context.emplace(std::move(*context));
    other.make(false);
    EXPECT_EQ(other.plan.has_value(), info.name == "autoswap");
    EXPECT_EQ(other.error.message.empty(), info.name == "autoswap");
  }
}

}  // namespace
}  // namespace tidepool
