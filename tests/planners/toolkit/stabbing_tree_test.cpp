#include "planners/toolkit/stabbing_tree.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/at.h"
#include "base/random.h"

namespace tidepool {
namespace {

/// While ranges go and values fall.
TEST(StabbingTree, FindsTheHighestOfTheRangesOverAnOpThatAreLeft) {
  struct Range {
    std::int32_t number;
    OpId begin;
    OpId end;
  };
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const std::size_t ops = 1 + random.below(40);
    StabbingTree tree(ops);
    std::vector<Range> ranges;
    std::vector<double> values;
    for (std::int32_t number = 0; number < 30; ++number) {
      const auto begin = static_cast<OpId>(random.below(ops + 1));
      const auto end = static_cast<OpId>(random.below(ops + 1));
      ranges.push_back({number, begin, end});
      values.push_back(static_cast<double>(random.below(10)));
      tree.add(number, begin, end, values.back());
    }
    while (!ranges.empty()) {
      for (OpId op = 0; op < static_cast<OpId>(ops); ++op) {
        std::vector<std::int32_t> over;
        for (const Range& r : ranges) {
          if (r.begin <= op && op < r.end) over.push_back(r.number);
        }
        std::vector<std::int32_t> found;
        tree.for_each_over(op, [&](std::int32_t number) { found.push_back(number); });
        ASSERT_THAT(found, ::testing::UnorderedElementsAreArray(over));
        const auto value_of = [&](std::int32_t number) { return values[at(number)]; };
        std::int32_t highest = kNone;
        for (const std::int32_t number : over) {
          if (highest == kNone || value_of(number) > value_of(highest)) highest = number;
        }
        ASSERT_EQ(tree.highest_over(op, value_of), highest);
        values[random.below(values.size())] -= static_cast<double>(random.below(4));
      }
      const auto next = ranges.begin() + static_cast<std::ptrdiff_t>(random.below(ranges.size()));
      tree.remove(next->number);
      ranges.erase(next);
    }
  }
}

TEST(StabbingTree, ANumberMayHaveTwoRanges) {
  StabbingTree tree(6);
  tree.add(4, 5, 6, 1.0);
  tree.add(4, 0, 2, 1.0);
  const auto one = [](std::int32_t) { return 1.0; };
  EXPECT_EQ(tree.highest_over(0, one), 4);
  EXPECT_EQ(tree.highest_over(3, one), kNone);
  EXPECT_EQ(tree.highest_over(5, one), 4);
  tree.remove(4);
  EXPECT_EQ(tree.highest_over(0, one), kNone);
}

/// Capuchin removed swaps that were never hidden, and wrote behind the end of the list.
TEST(StabbingTree, WhatWasNeverAddedMayBeRemoved) {
  StabbingTree tree(8);
  tree.add(0, 2, 5, 1.0);
  tree.remove(1000);
  EXPECT_EQ(tree.highest_over(3, [](std::int32_t) { return 1.0; }), 0);
}

}  // namespace
}  // namespace tidepool
