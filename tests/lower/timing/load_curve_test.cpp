#include "lower/timing/load_curve.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace tidepool {
namespace {

TEST(LoadCurve, IsAnArrayToWhichRangesAreAdded) {
  Random random(1);
  for (const std::size_t positions : {1u, 31u, 32u, 33u, 100u, 1000u, 1024u, 1025u, 5000u}) {
    std::vector<Bytes> plain(positions);
    LoadCurve curve;
    curve.resize(positions);
    for (std::size_t i = 0; i < positions; ++i) {
      plain[i] = curve.values()[i] = static_cast<Bytes>(random.below(1000));
    }
    curve.built();
    for (int step = 0; step < 300; ++step) {
      const std::size_t from = random.below(positions + 1);
      const std::size_t to = random.below(positions + 1);
      const auto bytes = static_cast<Bytes>(random.below(200));
      curve.add(from, to, bytes);
      for (std::size_t i = from; i < to; ++i) plain[i] += bytes;
      const Bytes limit = static_cast<Bytes>(random.below(2000 + 100 * step));
      std::size_t expected = std::min(from, to);
      while (expected < to && plain[expected] <= limit) ++expected;
      ASSERT_EQ(curve.first_above(from, to, limit), expected);
      const std::size_t any = random.below(positions);
      ASSERT_EQ(curve.at(any), plain[any]);
    }
  }
}

}  // namespace
}  // namespace tidepool
