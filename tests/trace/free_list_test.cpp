#include "trace/allocators/free_list.h"

#include <gtest/gtest.h>

namespace tidepool {
namespace {

TEST(FreeList, TakesTheSmallestThatFitsAndOfEqualsTheLowest) {
  FreeList list;
  const Range a = list.new_segment(100);
  const Range b = list.new_segment(50);
  const Range c = list.new_segment(50);
  for (const Range& r : {c, a, b}) list.insert(r);
  EXPECT_EQ(list.take_best(40)->address, b.address);
  EXPECT_EQ(list.take_best(50)->address, c.address);
  EXPECT_EQ(list.take_best(1)->address, a.address);
  EXPECT_FALSE(list.take_best(1));
}

TEST(FreeList, MergesNeighboursOfOneSegmentOnly) {
  FreeList list;
  const Range a = list.new_segment(100);
  const Range b = list.new_segment(100);
  list.insert({a.address, 30});
  list.insert({a.address + 60, 40});
  list.insert(b);
  EXPECT_FALSE(list.take_best(101));
  list.insert({a.address + 30, 30});
  EXPECT_FALSE(list.take_best(101)) << "segments do not merge";
  const auto whole = list.take_best(100);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->address, a.address);
  EXPECT_EQ(whole->bytes, 100);
}

TEST(FreeList, FindsWhatEndsAtAnAddress) {
  FreeList list;
  const Range a = list.new_segment(100);
  list.insert({a.address, 30});
  EXPECT_FALSE(list.take_ending_at(a.address + 31));
  EXPECT_FALSE(list.take_ending_at(a.address));
  EXPECT_EQ(list.take_ending_at(a.address + 30)->bytes, 30);
  EXPECT_FALSE(list.take_best(1));
}

}  // namespace
}  // namespace tidepool
