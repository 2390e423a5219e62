#include "planners/published/tflms/tflms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "planners/published/capuchin/capuchin_program.h"
#include "planning/make_plan.h"

namespace tidepool {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

Planned plan_tflms(const Program& program, Bytes budget) {
  FixedWorkload workload(program);
  auto planned = make_plan(*make_tflms(), workload, testing::byte_a_nanosecond(1), {budget, 0}, {});
  EXPECT_TRUE(planned) << planned.error().message;
  return std::move(*planned);
}

std::size_t swapped_by_tflms(const Program& program, Bytes budget) {
  const Strategy strategy = plan_tflms(program, budget).lowered.strategy;
  return static_cast<std::size_t>(
      std::count_if(strategy.gaps.begin(), strategy.gaps.end(),
                    [](Decision decision) { return decision != Decision::keep; }));
}

TEST(Tflms, TheLargestThresholdThatFitsIsTaken) {
  const Program program = testing::CapuchinChain::make();
  EXPECT_EQ(swapped_by_tflms(program, 7000), 0U);
  const std::size_t some = swapped_by_tflms(program, 5500);
  const std::size_t most = swapped_by_tflms(program, 3500);
  EXPECT_GE(some, 1U);
  EXPECT_GT(most, some);
  EXPECT_THAT(plan_tflms(program, 5500).notes, Contains(HasSubstr("levels are swapped")));
}

TEST(Tflms, WhereNoThresholdFitsTheStreamingScheduleIsUsedAndANoteSaysSo) {
  // A weight that does not leave beside a large op elsewhere.
  Program program = testing::CapuchinChain::make();
  program.tensors.push_back({"w", 3000, TensorKind::weight, true});
  const auto w = static_cast<TensorId>(program.tensors.size()) - 1;
  program.ops[1].accesses.push_back({w, AccessMode::read});
  const Planned planned = plan_tflms(program, smallest_budget(program, 1).bytes);
  EXPECT_TRUE(planned.lowered.streaming);
  EXPECT_THAT(planned.notes, Contains(HasSubstr("few enough tensors: TFLMS cannot train")));
}

}  // namespace
}  // namespace tidepool
