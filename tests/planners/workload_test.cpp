#include "planners/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "planners/planner.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SubBatchWorkload;

TEST(RoundsWorkload, MakesEachProgramOnceAndWhenItIsAskedFor) {
  SubBatchWorkload source;
  RoundsWorkload workload({8, 4, 1},
                          [&](std::int64_t size) { return Program(**source.program(size)); });
  EXPECT_EQ(workload.sub_batch(), 8);
  EXPECT_EQ(workload.known(4), nullptr);
  const Program* four = *workload.program(4);
  EXPECT_EQ(four->sub_batch, 4);
  (void)workload.program(1);
  EXPECT_EQ(*workload.program(4), four) << "stays where it is";
  EXPECT_EQ(workload.known(4), four);
  EXPECT_EQ(source.asked(), (std::map<std::int64_t, int>{{4, 1}, {1, 1}}));
  const auto other = workload.program(2);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::usage);
  EXPECT_THAT(other.error().message, HasSubstr("only of 8, 4, 1"));
}

TEST(RoundsWorkload, WhatCouldNotBeMadeIsMadeAnew) {
  int asked = 0;
  SubBatchWorkload source;
  RoundsWorkload workload({8}, [&](std::int64_t size) -> Result<Program> {
    if (++asked == 1) return fail(ErrorCode::interrupted, "interrupted");
    return Program(**source.program(size));
  });
  EXPECT_EQ(workload.program(8).error().code, ErrorCode::interrupted);
  EXPECT_TRUE(workload.program(8));
}

TEST(RestrictedWorkload, OffersSomeOfAnother) {
  SubBatchWorkload source;
  RestrictedWorkload workload(source, {2, 1});
  EXPECT_EQ(workload.sub_batch(), 2);
  EXPECT_THAT(workload.sub_batches(), ElementsAre(2, 1));
  EXPECT_EQ(*workload.program(1), *source.program(1));
  EXPECT_EQ(workload.program(8).error().code, ErrorCode::usage);
}

/// A workload may measure, which takes whole iterations.
TEST(PlannerContext, WhatTheWorkloadTakesIsNotThePlannersTime) {
  constexpr std::chrono::milliseconds kMeasuring{50};
  SubBatchWorkload source;
  RoundsWorkload workload({8, 4}, [&](std::int64_t size) {
    std::this_thread::sleep_for(kMeasuring);
    return Program(**source.program(size));
  });
  const Machine machine = testing::byte_a_nanosecond(64);
  const Budget budget{Bytes{1} << 30, 0};
  const PlannerOptions options;
  auto context = PlannerContext::make(workload, machine, budget, options);
  ASSERT_TRUE(context);
  const auto begun = context->begun();
  EXPECT_GE(context->waited(), kMeasuring);
  ASSERT_TRUE(context->lowering(4));
  EXPECT_GE(context->begun() - begun, kMeasuring);
  EXPECT_GE(context->waited(), 2 * kMeasuring);
  const auto waited = context->waited();
  ASSERT_TRUE(context->lowering(4));
  EXPECT_EQ(context->waited(), waited);
}

}  // namespace
}  // namespace tidepool
