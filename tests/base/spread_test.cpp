#include "base/spread.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace tidepool {
namespace {

TEST(Spread, OfFewTimesIsAllOfThem) {
  EXPECT_EQ(spread_of({}).count, 0U);
  const std::vector<Nanos> times{Nanos{30}, Nanos{10}, Nanos{20}};
  const Spread spread = spread_of(times);
  EXPECT_EQ(spread.median, Nanos{20});
  EXPECT_EQ(spread.low, Nanos{10});
  EXPECT_EQ(spread.high, Nanos{30});
  EXPECT_EQ(spread.count, 3U);
}

TEST(Spread, OfManyTimesLeavesOutWhatIsRare) {
  std::vector<Nanos> times(100, Nanos{1000});
  times[3] = Nanos{1'000'000};
  times[4] = Nanos{1};
  const Spread spread = spread_of(times);
  EXPECT_EQ(spread.low, spread.high);
  EXPECT_EQ(spread.median, Nanos{1000});
}

TEST(Spread, HasTheMedianOfMoreTimesNineTimesInTen) {
  int missed = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    std::vector<Nanos> times;
    for (int i = 0; i < 24; ++i) {
      times.emplace_back(static_cast<Nanos::rep>(1'000'000 * random.uniform()));
    }
    const Spread spread = spread_of(times);
    missed += spread.low > Nanos{500'000} || spread.high < Nanos{500'000} ? 1 : 0;
  }
  EXPECT_LT(missed, 60);
}

}  // namespace
}  // namespace tidepool
