#include "planners/toolkit/allowance.h"

#include <gtest/gtest.h>

namespace tidepool {
namespace {

using Clock = Allowance::Clock;

TEST(Allowance, OfEvaluationsIsUsedUpBySpendingThem) {
  Allowance allowance = Allowance::of(100);
  EXPECT_TRUE(allowance.repeats());
  EXPECT_FALSE(allowance.used_up());
  allowance.spend(60);
  Allowance part = allowance.part(0.5);
  part.spend(19);
  EXPECT_FALSE(part.used_up());
  part.spend(1);
  EXPECT_TRUE(part.used_up()) << "half of the 40 left";
  EXPECT_FALSE(allowance.used_up()) << "until it spends what the part has spent";
  allowance.spend(part.spent());
  Allowance slice = allowance.slice(0.5);
  slice.spend(20);
  EXPECT_TRUE(slice.used_up()) << "half of the whole would be 50: there are 20 left";
  allowance.spend(slice.spent());
  EXPECT_TRUE(allowance.used_up());
}

/// Regression: as a double this number is one too many.
TEST(Allowance, OfEvaluationsMayBeVeryLarge) {
  constexpr std::int64_t kMany = std::numeric_limits<std::int64_t>::max() - 1;
  EXPECT_EQ(Allowance::of(kMany).part(1).evaluations_left(), kMany);
  EXPECT_GT(Allowance::of(kMany).part(0.99).evaluations_left(), kMany / 2);
}

TEST(Allowance, AtMostSoManyEvaluationsOfWhatIsLeftUntilTheSameDeadline) {
  Allowance allowance = Allowance::of(100);
  allowance.spend(70);
  EXPECT_EQ(allowance.at_most(20).evaluations_left(), 20);
  EXPECT_EQ(allowance.at_most(50).evaluations_left(), 30);
  EXPECT_TRUE(allowance.at_most(50).repeats());
  const Allowance until = Allowance(Clock::now()).at_most(5);
  EXPECT_TRUE(until.used_up());
  EXPECT_FALSE(until.repeats());
}

TEST(Allowance, APartIsNeverNothing) {
  EXPECT_FALSE(Allowance::of(1).part(0.01).used_up());
  EXPECT_TRUE(Allowance::none().used_up());
}

TEST(Allowance, OfTimeIsUsedUpByTime) {
  Allowance allowance = Clock::now() + std::chrono::hours(10);
  EXPECT_FALSE(allowance.repeats());
  allowance.spend(1'000'000'000);
  EXPECT_FALSE(allowance.used_up());
  const auto hours = [](Clock::duration time) {
    return std::chrono::duration<double, std::ratio<3600>>(time).count();
  };
  EXPECT_NEAR(hours(allowance.part(0.25).time_left()), 2.5, 0.1);
  EXPECT_NEAR(hours(allowance.slice(0.25).time_left()), 2.5, 0.1);
  EXPECT_TRUE(Allowance(Clock::now()).used_up());
}

TEST(Allowance, WithoutLimitsNothingUsesItUp) {
  Allowance allowance = Allowance::unlimited();
  allowance.spend(1'000'000'000);
  EXPECT_FALSE(allowance.used_up());
  EXPECT_FALSE(allowance.part(0.001).used_up());
  EXPECT_EQ(allowance.time_left(), Clock::duration::zero());
}

}  // namespace
}  // namespace tidepool
