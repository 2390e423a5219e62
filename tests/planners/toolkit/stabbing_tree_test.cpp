#include "planners/toolkit/stabbing_tree.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/random.h"

namespace tidepool {
namespace {

TEST(StabbingTree, FindsTheRangesOverAnOpThatAreLeft) {
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
    for (std::int32_t number = 0; number < 30; ++number) {
      const auto begin = static_cast<OpId>(random.below(ops + 1));
      const auto end = static_cast<OpId>(random.below(ops + 1));
      ranges.push_back({number, begin, end});
      tree.add(number, begin, end);
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
        ASSERT_EQ(tree.least_over(op), over.empty() ? kNone : over.front());
      }
      const auto next = ranges.begin() + static_cast<std::ptrdiff_t>(random.below(ranges.size()));
      tree.remove(next->number, next->begin, next->end);
      ranges.erase(next);
    }
  }
}

TEST(StabbingTree, ANumberMayHaveTwoRanges) {
  StabbingTree tree(6);
  tree.add(4, 5, 6);
  tree.add(4, 0, 2);
  EXPECT_EQ(tree.least_over(0), 4);
  EXPECT_EQ(tree.least_over(3), kNone);
  EXPECT_EQ(tree.least_over(5), 4);
}

}  // namespace
}  // namespace tidepool
