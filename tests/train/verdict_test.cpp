#include "train/verdict.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/median.h"
#include "base/random.h"

namespace tidepool {
namespace {

/// Times around `middle`, in microseconds, of a machine that is twice as slow in a part of them.
std::vector<Nanos> drawn(std::uint64_t seed, double middle, double spread, double slow = 0) {
  std::vector<Nanos> times;
  Random random(seed);
  for (int i = 0; i < 24; ++i) {
    const double noise = 1 + spread * (random.uniform() - 0.5);
    const double factor = random.uniform() < slow ? 2 : 1;
    times.emplace_back(static_cast<Nanos::rep>(1000 * middle * noise * factor));
  }
  return times;
}

TEST(Verdict, IsWhatWasMeasuredWhereThatDiffersByMoreThanChance) {
  const auto fast = drawn(1, 500, 0.01);
  const auto slow = drawn(2, 510, 0.01);
  const std::vector<RanPlan> plans{{Nanos{480'000}, slow}, {Nanos{520'000}, fast}};
  EXPECT_EQ(verdict(plans), 1U);
}

TEST(Verdict, IsThePlanPredictedToBeFastestWhereMediansSayNothing) {
  int misled = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const auto better = drawn(2 * seed, 500, 0.2, 0.5);
    const auto worse = drawn(2 * seed + 1, 520, 0.2, 0.5);
    misled += median(worse) < median(better) ? 1 : 0;
    const std::vector<RanPlan> plans{{Nanos{520'000}, worse}, {Nanos{500'000}, better}};
    EXPECT_EQ(verdict(plans), 1U);
  }
  EXPECT_GT(misled, 5) << "or it shows nothing";
}

TEST(Verdict, OfEqualTimesIsByPrediction) {
  const std::vector<Nanos> same(4, Nanos{500});
  const std::vector<RanPlan> plans{{Nanos{2}, same}, {Nanos{1}, same}, {Nanos{0}, {}}};
  EXPECT_EQ(verdict(plans), 1U) << "one that did not run is none";
}

}  // namespace
}  // namespace tidepool
