#include "planners/auto/size_search.h"

#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

class SizeSearchTest : public ::testing::Test {
 protected:
  SizeSearchTest() {
    options_.evaluation_limit = 600;
    const Program& whole = **workload_.program(testing::SubBatchWorkload::kBatch);
    budget_.device = smallest_budget(whole, machine_.alignment()).bytes * 5 / 4;
    auto context = PlannerContext::make(workload_, machine_, budget_, options_);
    EXPECT_TRUE(context);
    context_.emplace(std::move(*context));
  }

  testing::SubBatchWorkload workload_;
  Machine machine_ = testing::byte_a_nanosecond(64);
  Budget budget_;
  PlannerOptions options_;
  std::optional<PlannerContext> context_;
};

TEST_F(SizeSearchTest, KnowsOneSizeOnly) {
  OneSize one(workload_, 4);
  EXPECT_EQ(one.sub_batches(), std::vector<std::int64_t>{4});
  ASSERT_TRUE(one.program(4));
  EXPECT_EQ((*one.program(4))->sub_batch, 4);
  EXPECT_FALSE(one.program(8));
}

TEST_F(SizeSearchTest, PlansItsSize) {
  SizeSearch search(*context_, 2, options_, 2);
  ASSERT_TRUE(search.begin(SizeSearch::Starts::quick));
  EXPECT_EQ(search.best().strategy.sub_batch, 2);
  const auto any = [](const Strategy&) { return true; };
  EXPECT_LE(search.best().iteration_time, search.fastest_start(any));
}

TEST_F(SizeSearchTest, SaysWhenNothingFits) {
  budget_.device = 1000;
  SizeSearch search(*context_, 8, options_, 2);
  const auto begun = search.begin(SizeSearch::Starts::quick);
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, ErrorCode::infeasible);
  EXPECT_FALSE(search.has_plan());
}

/// Systems that decide addresses themselves return plans whose strategy says nothing.
TEST_F(SizeSearchTest, APlanWithoutAStrategyCountsAsItIs) {
  SizeSearch search(*context_, 8, options_, 2);
  ASSERT_TRUE(search.begin(SizeSearch::Starts::quick));
  Lowered slow;
  slow.strategy.sub_batch = 8;
  slow.iteration_time = 2 * search.best().iteration_time;
  search.add_plan(slow, "other");
  EXPECT_LT(search.best().iteration_time, slow.iteration_time);
  Lowered fast = slow;
  fast.iteration_time = search.search()->least_time() / 2;
  search.add_plan(fast, "other");
  search.go_on(Allowance::of(600));
  EXPECT_EQ(search.best().iteration_time, fast.iteration_time);
  EXPECT_NE(search.note().find("best from other"), std::string::npos);
}

}  // namespace
}  // namespace tidepool
