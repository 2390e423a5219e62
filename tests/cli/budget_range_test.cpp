#include "budget_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidepool::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(BudgetRange, ASingleBudgetIsTakenAsItIs) {
  EXPECT_THAT(*budgets_of_range("60%"), ElementsAre("60%"));
  EXPECT_THAT(*budgets_of_range("lots"), ElementsAre("lots")) << "what it means is found out later";
}

TEST(BudgetRange, BothEndsAndEqualStepsBetween) {
  EXPECT_THAT(*budgets_of_range("30%..60%"), ElementsAre("30%", "37.5%", "45%", "52.5%", "60%"));
  EXPECT_THAT(*budgets_of_range("30%..60%:10%"), ElementsAre("30%", "40%", "50%", "60%"));
  EXPECT_THAT(*budgets_of_range("30%..60%:20%"), ElementsAre("30%", "50%", "60%"));
  EXPECT_THAT(*budgets_of_range("1kB..2kB:500B"), ElementsAre("1000", "1500", "2000"));
}

TEST(BudgetRange, RefusesTheRest) {
  EXPECT_THAT(budgets_of_range("60%..30%").error().message, HasSubstr("smaller one"));
  EXPECT_THAT(budgets_of_range("30%..30%").error().message, HasSubstr("smaller one"));
  EXPECT_THAT(budgets_of_range("30%..400MiB").error().message, HasSubstr("do not mix"));
  EXPECT_THAT(budgets_of_range("30%..60%:5MiB").error().message, HasSubstr("do not mix"));
  EXPECT_THAT(budgets_of_range("1B..1TiB:1B").error().message, HasSubstr("more than 1000"));
  EXPECT_THAT(budgets_of_range("30%..").error().message, HasSubstr("''"));
  EXPECT_THAT(budgets_of_range("30%..x").error().message, HasSubstr("'x'"));
  EXPECT_THAT(budgets_of_range("1kB..2kB:0").error().message, HasSubstr("step"));
  EXPECT_EQ(budgets_of_range("60%..30%").error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace tidepool::cli
