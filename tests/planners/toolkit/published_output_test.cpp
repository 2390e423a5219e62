#include "planners/toolkit/published_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "ir/load_profile.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;

class PublishedOutput : public ::testing::Test {
 protected:
  /// Of everything kept.
  [[nodiscard]] Result<PlannerOutput> output(Bytes device, const MayDecide& may = {}) {
    budget_.device = device;
    options_.may = may;
    auto context = PlannerContext::make(workload_, machine_, budget_, options_);
    return published_output(*context, context->everything_kept(), "a note", "the system");
  }

  testing::SubBatchWorkload workload_;
  Program program_ = **workload_.program(testing::SubBatchWorkload::kBatch);
  Machine machine_ = testing::byte_a_nanosecond(64);
  Budget budget_;
  PlannerOptions options_;
  Bytes least_ = smallest_budget(program_, 64).bytes;
};

TEST_F(PublishedOutput, WhatFitsIsThePlan) {
  const auto result = output(Bytes{1} << 30);
  ASSERT_TRUE(result);
  EXPECT_FALSE(std::get<Lowered>(result->choice).streaming);
  EXPECT_THAT(result->notes, ElementsAre("a note"));
}

TEST_F(PublishedOutput, WhatDoesNotFitIsStreamedAndSaysSo) {
  const auto result = output(least_);
  ASSERT_TRUE(result);
  EXPECT_TRUE(std::get<Lowered>(result->choice).streaming);
  EXPECT_THAT(result->notes,
              ElementsAre("a note; the plan does not fit: the system cannot train in this "
                          "budget; the streaming schedule is used"));
}

TEST_F(PublishedOutput, WhereNothingMayLeaveNothingIsStreamed) {
  MayDecide may;
  may.swap = false;
  const auto result = output(least_, may);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::infeasible);
}

TEST_F(PublishedOutput, BelowTheSmallestBudgetTheErrorNamesIt) {
  const auto result = output(least_ - 1);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::infeasible);
  EXPECT_EQ(result.error().smallest_feasible, least_);
}

TEST_F(PublishedOutput, RoundsAreOfTheFirstSizeInWhichTheSystemCanTrain) {
  budget_.device = Bytes{1} << 30;
  auto context = PlannerContext::make(workload_, machine_, budget_, options_);
  ASSERT_TRUE(context);
  std::vector<std::int64_t> asked;
  const auto trains_in = [&](std::int64_t first) {
    return [&asked, &context, first](Lowering& lowering) -> Result<std::optional<PlannerOutput>> {
      asked.push_back(lowering.program().sub_batch);
      if (asked.back() > first) return std::nullopt;
      return PlannerOutput{context->everything_kept(), {"a note"}};
    };
  };
  const auto found =
      in_first_size(*context, std::array<std::int64_t, 3>{8, 4, 2}, "the system", trains_in(4));
  ASSERT_TRUE(found);
  EXPECT_THAT(asked, ElementsAre(8, 4));
  EXPECT_THAT(found->notes, ElementsAre("a note", "2 rounds of 4 samples"));
  const auto none =
      in_first_size(*context, std::array<std::int64_t, 1>{8}, "the system", trains_in(0));
  ASSERT_TRUE(none);
  EXPECT_THAT(none->notes, ElementsAre(::testing::HasSubstr("the system cannot train")));
}

}  // namespace
}  // namespace tidepool
