#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace tidepool {
namespace {

TEST(Random, TheSameSeedGivesTheSameNumbers) {
  Random a(42);
  Random b(42);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a(), b());
}

TEST(Random, NeighbouringSeedsGiveDifferentNumbers) {
  std::set<std::uint64_t> first;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) first.insert(Random(seed)());
  EXPECT_EQ(first.size(), 1000u);
}

TEST(Random, NumbersAreTheSameOnEveryPlatform) {
  // SplitMix64's published first output for seed 0.
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafULL);
  static_assert(mix64(1) != mix64(2));
}

TEST(Random, BelowStaysBelowAndReachesEveryNumber) {
  Random random(7);
  std::array<int, 5> seen{};
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t x = random.below(5);
    ASSERT_LT(x, 5u);
    ++seen[x];
  }
  for (const int count : seen) {
    EXPECT_GT(count, 850);
    EXPECT_LT(count, 1150);
  }
  EXPECT_EQ(random.below(1), 0u);
}

TEST(Random, UniformIsInTheHalfOpenUnitIntervalWithMeanAHalf) {
  Random random(9);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double x = random.uniform();
    ASSERT_GE(x, 0.0);
    ASSERT_LT(x, 1.0);
    sum += x;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.01);
}

TEST(HashCombine, DependsOnTheOrder) {
  EXPECT_NE(hash_combine(1, 2), hash_combine(2, 1));
  EXPECT_NE(hash_combine(0, 0), 0u);
}

}  // namespace
}  // namespace tidepool
