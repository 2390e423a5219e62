#include "planners/toolkit/area_curve.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace tidepool {
namespace {

TEST(AreaCurve, IsTheSumOfLoadTimesTimeAfterAnyChanges) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    std::vector<Bytes> load(1 + random.below(300));
    std::vector<Nanos> start{Nanos{0}};
    for (Bytes& bytes : load) {
      bytes = static_cast<Bytes>(random.below(1'000));
      start.push_back(start.back() + Nanos{static_cast<Nanos::rep>(random.below(1'000))});
    }
    AreaCurve curve(load, start);
    for (int change = 0; change < 20; ++change) {
      double sum = 0;
      for (std::size_t op = 0; op < load.size(); ++op) {
        ASSERT_NEAR(curve.until(static_cast<OpId>(op)), sum, 1e-9);
        sum += static_cast<double>(load[op]) * to_seconds(start[op + 1] - start[op]);
      }
      ASSERT_NEAR(curve.whole(), sum, 1e-9);
      const auto begin = static_cast<OpId>(random.below(load.size() + 1));
      const auto end = static_cast<OpId>(random.below(load.size() + 1));
      const auto bytes = static_cast<Bytes>(random.below(100));
      curve.lower(begin, end, bytes);
      for (OpId op = begin; op < end; ++op) load[static_cast<std::size_t>(op)] -= bytes;
    }
  }
}

}  // namespace
}  // namespace tidepool
