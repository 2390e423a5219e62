#include "base/least.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace tidepool {
namespace {

TEST(LeastEnough, IsFoundWhereEverythingAboveIsEnough) {
  for (const Bytes step : {Bytes{1}, Bytes{64}}) {
    for (Bytes least = 0; least <= 40 * step; least += step) {
      int asked = 0;
      const auto enough = [&](Bytes bytes) {
        ++asked;
        EXPECT_EQ(bytes % step, 0);
        return bytes >= least;
      };
      EXPECT_EQ(least_enough(5 * step, 1 << 20, step, enough), std::max(least, 5 * step));
      EXPECT_LE(asked, 12);
    }
  }
}

TEST(LeastEnough, IsNothingWhereNothingIs) {
  const auto never = [](Bytes) { return false; };
  const auto always = [](Bytes) { return true; };
  EXPECT_FALSE(least_enough(0, 0, 64, never));
  EXPECT_FALSE(least_enough(64, 6400, 64, never));
  EXPECT_FALSE(least_enough(65, 100, 64, always));
  EXPECT_EQ(least_enough(65, 128, 64, always), 128);
  EXPECT_EQ(least_enough(0, 64, 64, [](Bytes bytes) { return bytes == 64; }), 64);
}

/// As of addresses: more is not always enough.
TEST(LeastEnough, WasTriedAndOneStepLessToo) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto odds = 1 + random.below(9);
    std::set<Bytes> fine, short_of;
    const auto enough = [&](Bytes bytes) {
      const bool is = bytes >= 64'000 || random.below(odds) == 0;
      (is ? fine : short_of).insert(bytes);
      return is;
    };
    const auto found = least_enough(640, 64'000, 64, enough);
    ASSERT_TRUE(found);
    EXPECT_TRUE(fine.contains(*found));
    EXPECT_TRUE(*found == 640 || short_of.contains(*found - 64));
  }
}

}  // namespace
}  // namespace tidepool
