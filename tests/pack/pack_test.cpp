#include "pack/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/random.h"
#include "pack/best_fit.h"
#include "pack/first_fit.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;

/// A problem from who conflicts with whom.
PackProblem problem(std::vector<Bytes> sizes, const std::function<bool(int, int)>& conflict) {
  PackProblem p;
  p.sizes = std::move(sizes);
  const int n = static_cast<int>(p.sizes.size());
  for (int i = 0; i < n; ++i) {
    p.starts.push_back(i);
    p.neighbour_start.push_back(static_cast<std::int32_t>(p.neighbours.size()));
    for (int j = 0; j < n; ++j) {
      if (i != j && conflict(i, j)) p.neighbours.push_back(j);
    }
  }
  p.neighbour_start.push_back(static_cast<std::int32_t>(p.neighbours.size()));
  return p;
}

struct Interval {
  int begin = 0;
  int end = 0;  // exclusive
  Bytes size = 0;
};

/// With `period` > 0 an interval whose end is not above its begin wraps around.
bool live(const Interval& i, int time, int period) {
  if (period > 0 && i.end <= i.begin) return time >= i.begin || time < i.end;
  return time >= i.begin && time < i.end;
}

PackProblem interval_problem(const std::vector<Interval>& list, int times, int period = 0) {
  std::vector<Bytes> sizes;
  for (const Interval& i : list) sizes.push_back(i.size);
  PackProblem p = problem(std::move(sizes), [&](int a, int b) {
    for (int t = 0; t < times; ++t) {
      if (live(list[static_cast<std::size_t>(a)], t, period) &&
          live(list[static_cast<std::size_t>(b)], t, period)) {
        return true;
      }
    }
    return false;
  });
  for (std::size_t i = 0; i < list.size(); ++i) p.starts[i] = list[i].begin;
  return p;
}

Bytes max_load(const std::vector<Interval>& list, int times, int period = 0) {
  Bytes most = 0;
  for (int t = 0; t < times; ++t) {
    Bytes load = 0;
    for (const Interval& i : list) load += live(i, t, period) ? i.size : 0;
    most = std::max(most, load);
  }
  return most;
}

void expect_valid(const PackProblem& p, const Packing& packing) {
  ASSERT_EQ(packing.offsets.size(), p.sizes.size());
  Bytes top = 0;
  for (std::size_t i = 0; i < p.sizes.size(); ++i) {
    EXPECT_GE(packing.offsets[i], 0);
    top = std::max(top, packing.offsets[i] + p.sizes[i]);
    for (const std::int32_t other : p.conflicts(i)) {
      const auto j = static_cast<std::size_t>(other);
      const bool apart = packing.offsets[i] + p.sizes[i] <= packing.offsets[j] ||
                         packing.offsets[j] + p.sizes[j] <= packing.offsets[i];
      EXPECT_TRUE(apart) << i << " and " << j << " overlap";
    }
  }
  EXPECT_EQ(packing.footprint, top);
}

/// SmartPool's Fig. 4: a block that fits two holes. 0..4 are alive together; 5 lives while only 0,
/// 2 and 4 do, so it sees the holes of 1 (9 bytes) and of 3 (7 bytes).
PackProblem two_holes() {
  return problem({10, 9, 8, 7, 7, 5}, [](int a, int b) {
    if (a > b) std::swap(a, b);
    return b < 5 || a == 0 || a == 2 || a == 4;
  });
}

TEST(FirstFit, TakesTheLowestHoleThatFits) {
  const Packing packing = pack_first_fit(two_holes());
  EXPECT_THAT(packing.offsets, ElementsAre(0, 10, 19, 27, 34, 10));
  EXPECT_EQ(packing.footprint, 41);
}

TEST(BestFit, TakesTheSmallestHoleThatFits) {
  const Packing packing = pack_best_fit(two_holes());
  EXPECT_THAT(packing.offsets, ElementsAre(0, 10, 19, 27, 34, 27));
  EXPECT_EQ(packing.footprint, 41);
}

TEST(BestFit, OfEqualHolesTakesTheLowest) {
  // As two_holes, with holes of 7 bytes at 8 and at 23.
  const PackProblem p = problem({8, 7, 8, 7, 7, 5}, [](int a, int b) {
    if (a > b) std::swap(a, b);
    return b < 5 || a == 0 || a == 2 || a == 4;
  });
  const Packing packing = place_in_order(p, std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}, true);
  EXPECT_THAT(packing.offsets, ElementsAre(0, 8, 15, 23, 30, 8));
}

TEST(Packers, APoolWithoutALargeEnoughHoleIsExtended) {
  const PackProblem p = problem({10, 9, 8, 7, 7, 10}, [](int a, int b) {
    if (a > b) std::swap(a, b);
    return b < 5 || a == 0 || a == 2 || a == 4;
  });
  const std::vector<std::int32_t> order{0, 1, 2, 3, 4, 5};
  for (const bool best : {false, true}) {
    const Packing packing = place_in_order(p, order, best);
    EXPECT_EQ(packing.offsets[5], 41);
    EXPECT_EQ(packing.footprint, 51);
  }
}

TEST(Packers, SeveralSmallBuffersShareTheBytesOfALargeOne) {
  // 0 is dead when 1, 2 and 3 live together.
  const PackProblem p = problem({9, 3, 3, 3}, [](int a, int b) { return a != 0 && b != 0; });
  for (const Packer& packer : packers()) {
    const Packing packing = packer.pack(p);
    expect_valid(p, packing);
    EXPECT_EQ(packing.footprint, 9) << packer.name;
  }
}

TEST(Packers, AnEmptyProblemHasNoFootprint) {
  const PackProblem p = problem({}, [](int, int) { return false; });
  for (const Packer& packer : packers()) EXPECT_EQ(packer.pack(p).footprint, 0);
}

TEST(Packers, BuffersWithoutConflictsAllStartAtZero) {
  const PackProblem p = problem({3, 9, 6}, [](int, int) { return false; });
  for (const Packer& packer : packers()) {
    const Packing packing = packer.pack(p);
    EXPECT_THAT(packing.offsets, ElementsAre(0, 0, 0));
    EXPECT_EQ(packing.footprint, 9);
  }
}

TEST(Packers, ACliqueNeedsTheSumOfItsSizes) {
  const PackProblem p = problem({3, 9, 6}, [](int, int) { return true; });
  for (const Packer& packer : packers()) {
    const Packing packing = packer.pack(p);
    expect_valid(p, packing);
    EXPECT_EQ(packing.footprint, 18);
  }
}

TEST(Packers, AreBestFitFirstAndHaveDistinctNames) {
  ASSERT_GE(packers().size(), 2u);
  EXPECT_EQ(packers()[0].name, "best-fit");
  EXPECT_EQ(packers()[1].name, "first-fit");
}

TEST(BySizeDescending, BreaksTiesByStartAndThenByIndex) {
  PackProblem p = problem({5, 7, 5, 5, 7}, [](int, int) { return false; });
  p.starts = {9, 4, 2, 2, 1};
  EXPECT_THAT(by_size_descending(p), ElementsAre(4, 1, 2, 3, 0));
}

TEST(Packers, OnRandomIntervalsNothingOverlapsAndTheFootprintIsAtLeastTheLoad) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    constexpr int kTimes = 60;
    std::vector<Interval> list;
    for (std::size_t i = 0; i < 10 + random.below(60); ++i) {
      const int begin = static_cast<int>(random.below(kTimes));
      const int length =
          1 + static_cast<int>(random.below(static_cast<std::uint64_t>(kTimes - begin)));
      list.push_back({begin, begin + length, static_cast<Bytes>(1 + random.below(1000))});
    }
    const PackProblem p = interval_problem(list, kTimes);
    const Bytes load = max_load(list, kTimes);
    for (const Packer& packer : packers()) {
      const Packing packing = packer.pack(p);
      expect_valid(p, packing);
      EXPECT_GE(packing.footprint, load);
      EXPECT_LE(packing.footprint, 3 * load) << "greedy is far better than this in practice";
    }
  }
}

TEST(Packers, OnRandomCyclicIntervalsNothingOverlapsAndTheFootprintIsAtLeastTheLoad) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed + 1000);
    constexpr int kPeriod = 40;
    std::vector<Interval> list;
    for (std::size_t i = 0; i < 10 + random.below(40); ++i) {
      const int begin = static_cast<int>(random.below(kPeriod));
      const int end = static_cast<int>(random.below(kPeriod));  // at or below begin: it wraps
      list.push_back({begin, end, static_cast<Bytes>(1 + random.below(1000))});
    }
    const PackProblem p = interval_problem(list, kPeriod, kPeriod);
    for (const Packer& packer : packers()) {
      const Packing packing = packer.pack(p);
      expect_valid(p, packing);
      EXPECT_GE(packing.footprint, max_load(list, kPeriod, kPeriod));
    }
  }
}

}  // namespace
}  // namespace tidepool
