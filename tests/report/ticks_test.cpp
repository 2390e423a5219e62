#include "report/ticks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace tidepool {
namespace {

std::vector<std::string> labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> list;
  for (const Tick& t : ticks) list.push_back(t.label);
  return list;
}

/// In order from 0 to `top`, at even distances, each with a label of its own.
void expect_axis(const std::vector<Tick>& ticks, double top, int most) {
  ASSERT_FALSE(ticks.empty());
  EXPECT_EQ(ticks.front().value, 0);
  EXPECT_LE(ticks.back().value, top * (1 + 1e-9));
  EXPECT_LE(ticks.size(), static_cast<std::size_t>(most) + 2);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    EXPECT_TRUE(seen.insert(ticks[i].label).second) << ticks[i].label << " twice up to " << top;
    if (i > 0) {
      EXPECT_NEAR(ticks[i].value, static_cast<double>(i) * ticks[1].value, 1e-6 * top);
    }
  }
}

TEST(Ticks, AreRoundNumbersOfOneUnit) {
  EXPECT_THAT(labels(time_ticks(Nanos{84'600'000}, 5)),
              ::testing::ElementsAre("0 ms", "20 ms", "40 ms", "60 ms", "80 ms"));
  EXPECT_THAT(labels(time_ticks(Nanos{2'500'000'000}, 5)),
              ::testing::ElementsAre("0.0 s", "0.5 s", "1.0 s", "1.5 s", "2.0 s", "2.5 s"));
  EXPECT_THAT(labels(byte_ticks(450 * kMiB, 5)),
              ::testing::ElementsAre("0 MiB", "100 MiB", "200 MiB", "300 MiB", "400 MiB"));
}

TEST(Ticks, LieInTheRangeForEveryRange) {
  for (const int most : {1, 3, 8, 14}) {
    for (std::int64_t top = 1; top < 40'000'000'000'000; top = top * 7 / 4 + 1) {
      expect_axis(time_ticks(Nanos{top}, most), static_cast<double>(top), most);
      expect_axis(byte_ticks(top, most), static_cast<double>(top), most);
    }
  }
}

TEST(Ticks, OfNothingIsZero) {
  EXPECT_THAT(labels(time_ticks(Nanos{0}, 5)), ::testing::ElementsAre("0 ns"));
  EXPECT_THAT(labels(byte_ticks(0, 5)), ::testing::ElementsAre("0 B"));
}

TEST(Ticks, SharesAreInPercentFromAnyStart) {
  EXPECT_EQ(labels(percent_ticks(0.28, 0.62, 4)),
            (std::vector<std::string>{"30 %", "40 %", "50 %", "60 %"}));
  EXPECT_EQ(labels(percent_ticks(-0.05, 0.1, 3)),
            (std::vector<std::string>{"-5 %", "0 %", "5 %", "10 %"}));
  EXPECT_EQ(labels(percent_ticks(0, 0.001, 2)),
            (std::vector<std::string>{"0.00 %", "0.05 %", "0.10 %"}));
  EXPECT_EQ(percent_ticks(0.5, 0.5, 4).size(), 1U);
}

}  // namespace
}  // namespace tidepool
