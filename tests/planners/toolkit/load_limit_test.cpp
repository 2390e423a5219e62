#include "planners/toolkit/load_limit.h"

#include <gtest/gtest.h>

namespace tidepool {
namespace {

TEST(LoadLimit, BeginsAtTheBudgetAndGoesDownByTheExcessOrAStep) {
  LoadLimit limit(1000, 100);
  EXPECT_EQ(limit.bytes(), 1000);
  limit.tighten(300);
  EXPECT_EQ(limit.bytes(), 700);
  limit.tighten(0);  // not known by how much
  EXPECT_EQ(limit.bytes(), 689);
  limit.tighten(-50);
  EXPECT_EQ(limit.bytes(), 678);
  limit.tighten(5000);
  EXPECT_LE(limit.bytes(), 0) << "nothing left to try";
}

TEST(LoadLimit, SmallStepsBeginAtTheBudgetAgainWhateverTheExcess) {
  LoadLimit limit(1000, 100);
  limit.tighten(900);
  EXPECT_TRUE(limit.begin_small_steps());
  EXPECT_EQ(limit.bytes(), 1000);
  limit.tighten(900);
  EXPECT_EQ(limit.bytes(), 989);
  EXPECT_FALSE(limit.begin_small_steps()) << "they were small";
}

TEST(LoadLimit, GoesDownAtOnceAndFromThereUpAgain) {
  LoadLimit limit(1000, 100);
  limit.follow(30);
  limit.at_most(900);
  EXPECT_EQ(limit.bytes(), 900);
  limit.at_most(950);
  EXPECT_EQ(limit.bytes(), 900) << "it is below";
  limit.follow(0);
  EXPECT_EQ(limit.bytes(), 950);
  limit.at_most(-5);
  EXPECT_EQ(limit.bytes(), 1);
}

/// Addresses always take a quarter more than the load.
TEST(LoadLimit, FollowsWhatTheAddressesNeed) {
  constexpr Bytes kBudget = 100'000;
  LoadLimit limit(kBudget, 512);
  Bytes highest_that_fits = 0;
  for (int round = 0; round < 60; ++round) {
    const Bytes needed = limit.bytes() * 5 / 4;
    if (needed <= kBudget) highest_that_fits = std::max(highest_that_fits, limit.bytes());
    limit.follow(std::max<Bytes>(needed - kBudget, 0));
    EXPECT_GE(limit.bytes(), 1);
    EXPECT_LE(limit.bytes(), kBudget);
  }
  EXPECT_GT(highest_that_fits, kBudget * 78 / 100);
}

}  // namespace
}  // namespace tidepool
