#include "trace/allocators/expandable.h"

#include <gtest/gtest.h>

namespace tidepool {
namespace {

TEST(ExpandableAllocator, MapsWholePagesOfItsPool) {
  ExpandableAllocator a;
  a.allocate(0, 1);
  EXPECT_EQ(a.reserved(), 2 * kMiB);
  a.allocate(1, 2 * kMiB);
  EXPECT_EQ(a.reserved(), 22 * kMiB);
  a.allocate(2, 41 * kMiB);  // 18 MiB are free: 23 more are two pages
  EXPECT_EQ(a.reserved(), 62 * kMiB);
}

TEST(ExpandableAllocator, FreedBytesMergeOverPages) {
  ExpandableAllocator a;
  a.allocate(0, 20 * kMiB);
  a.allocate(1, 20 * kMiB);
  a.free(0);
  a.free(1);
  a.allocate(2, 40 * kMiB);
  EXPECT_EQ(a.reserved(), 40 * kMiB);
}

TEST(ExpandableAllocator, SplitsDownTo512InBothPools) {
  ExpandableAllocator a;
  a.allocate(0, 20 * kMiB - 512);
  a.free(0);
  a.allocate(1, 18 * kMiB);
  a.allocate(2, 2 * kMiB);
  EXPECT_EQ(a.reserved(), 20 * kMiB);
}

TEST(ExpandableAllocator, AHoleTooSmallIsLeftAndPagesAreMappedBehind) {
  ExpandableAllocator a;
  a.allocate(0, 10 * kMiB);
  a.allocate(1, 10 * kMiB);
  a.free(0);
  a.allocate(2, 12 * kMiB);
  EXPECT_EQ(a.reserved(), 40 * kMiB);
  a.allocate(3, 10 * kMiB);
  EXPECT_EQ(a.reserved(), 40 * kMiB);
}

}  // namespace
}  // namespace tidepool
