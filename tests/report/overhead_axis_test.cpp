#include "report/overhead_axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tidepool {
namespace {

constexpr int kMost = 9;
constexpr double kApart = 0.05;

/// The room below was taken in percent: on a logarithmic axis it went beyond -100 %, or far down.
TEST(OverheadAxis, EveryValueHasItsPlaceWithALittleRoomBesideIt) {
  for (const auto& [low, high] : {std::pair{-0.009, 40.0},
                                  {-0.009, 15.0},
                                  {-0.9, 1000.0},
                                  {-1.0, 3.0},
                                  {0.0, 3.0},
                                  {-0.009, 0.5},
                                  {-0.3, -0.1},
                                  {0.0, 0.0},
                                  {0.02, 0.03}}) {
    const OverheadAxis axis(low, high);
    for (const double share : {low, high, 0.0}) {
      EXPECT_GT(axis.place(share), 0.02) << low << " " << high;
      EXPECT_LT(axis.place(share), 0.98) << low << " " << high;
    }
    EXPECT_LT(axis.place(std::min(low, 0.0)), 0.08) << "no empty area below";
    const auto ticks = axis.ticks(kMost, kApart);
    EXPECT_TRUE(std::ranges::any_of(ticks, [](const Tick& t) { return t.value == 0; }));
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      EXPECT_GE(axis.place(ticks[i].value), -1e-9);
      EXPECT_LE(axis.place(ticks[i].value), 1 + 1e-9);
      if (i > 0) {
        EXPECT_GE(axis.place(ticks[i].value) - axis.place(ticks[i - 1].value), kApart - 1e-9);
      }
    }
  }
}

TEST(OverheadAxis, ValuesFarBelow0AreMarked) {
  for (const double high : {1.0, 30.0}) {
    const auto ticks = OverheadAxis(-0.6, high).ticks(kMost, kApart);
    EXPECT_LT(ticks.front().value, -0.15) << high;
    EXPECT_EQ(ticks.front().label.front(), '-');
  }
}

TEST(OverheadAxis, EqualFactorsOfTheTimeAreEquallyFarApart) {
  const OverheadAxis axis(0, 31);
  EXPECT_TRUE(axis.logarithmic());
  EXPECT_NEAR(axis.place(1) - axis.place(0), axis.place(7) - axis.place(3), 1e-12);
  EXPECT_FALSE(OverheadAxis(0, 1.5).logarithmic());
}

TEST(OverheadAxis, ZerosAloneAreOnAnAxisOfSomePercent) {
  const auto ticks = OverheadAxis(0, 0).ticks(kMost, kApart);
  EXPECT_NEAR(ticks.back().value, 0.1, 1e-9);
  EXPECT_EQ(ticks.back().label, "10 %");
}

}  // namespace
}  // namespace tidepool
