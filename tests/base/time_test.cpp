#include "base/time.h"

#include <gtest/gtest.h>

namespace tidepool {
namespace {

TEST(FormatTime, PicksTheUnitThatReadsBest) {
  EXPECT_EQ(format_time(Nanos{0}), "0 ns");
  EXPECT_EQ(format_time(Nanos{999}), "999 ns");
  EXPECT_EQ(format_time(Nanos{12'300}), "12.3 us");
  EXPECT_EQ(format_time(Nanos{81'570'000}), "81.57 ms");
  EXPECT_EQ(format_time(Nanos{2'100'000'000}), "2.10 s");
}

TEST(FormatTime, NegativeTimesKeepTheirUnit) {
  EXPECT_EQ(format_time(Nanos{-1}), "-1 ns");
  EXPECT_EQ(format_time(Nanos{-5'000'000}), "-5.00 ms");
}

TEST(FromSeconds, RoundsToTheNearestNanosecond) {
  EXPECT_EQ(from_seconds(0), Nanos{0});
  EXPECT_EQ(from_seconds(1e-9), Nanos{1});
  EXPECT_EQ(from_seconds(1.4e-9), Nanos{1});
  EXPECT_EQ(from_seconds(1.6e-9), Nanos{2});
  EXPECT_EQ(from_seconds(0.08157), Nanos{81'570'000});
}

TEST(Time, ConversionsToDoubleUseTheUnitInTheirName) {
  EXPECT_DOUBLE_EQ(to_ms(Nanos{1'500'000}), 1.5);
  EXPECT_DOUBLE_EQ(to_seconds(Nanos{1'500'000}), 0.0015);
}

}  // namespace
}  // namespace tidepool
