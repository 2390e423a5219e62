#include "planners/toolkit/peak_curve.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace tidepool {
namespace {

TEST(PeakCurve, IsTheListOfLoadsAfterAnyChanges) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    std::vector<Bytes> load(1 + random.below(40));
    for (Bytes& bytes : load) bytes = static_cast<Bytes>(random.below(50));
    PeakCurve curve(load);
    for (int change = 0; change < 40; ++change) {
      const auto highest = std::max_element(load.begin(), load.end());
      ASSERT_EQ(curve.peak(), *highest);
      ASSERT_EQ(curve.peak_op(), highest - load.begin());
      ASSERT_EQ(curve.load(), load);
      const auto begin = static_cast<OpId>(random.below(load.size() + 1));
      const auto end = static_cast<OpId>(random.below(load.size() + 1));
      const auto bytes = static_cast<Bytes>(random.below(9));
      curve.lower(begin, end, bytes);
      for (OpId op = begin; op < end; ++op) load[static_cast<std::size_t>(op)] -= bytes;
    }
  }
}

}  // namespace
}  // namespace tidepool
