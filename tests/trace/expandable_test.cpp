#include "trace/allocators/expandable.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "trace/allocators/caching.h"

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

/// What lies before the end is taken first, though the range at the end would fit better.
TEST(ExpandableAllocator, TheRangeThatCanGrowIsTakenLast) {
  ExpandableAllocator a;
  a.allocate(0, 16 * kMiB);
  a.allocate(1, 10 * kMiB);
  a.allocate(2, 2 * kMiB);  // 12 MiB are free at the end
  a.free(0);
  a.allocate(3, 12 * kMiB);
  a.allocate(4, 30 * kMiB);  // 12 MiB and one page; from the 4 MiB of the hole nothing
  EXPECT_EQ(a.reserved(), 60 * kMiB);
}

/// A few blocks do not fill the pages of 20 MiB; the caching allocator makes segments to measure.
TEST(ExpandableAllocator, ReservesMoreThanTheCachingAllocatorWhereLittleIsAllocated) {
  ExpandableAllocator expandable;
  CachingAllocator caching;
  for (Allocator* a : std::initializer_list<Allocator*>{&expandable, &caching}) {
    a->allocate(0, 1000);
    a->allocate(1, 12 * kMiB);
  }
  EXPECT_EQ(expandable.reserved(), (2 + 20) * kMiB);
  EXPECT_EQ(caching.reserved(), (2 + 12) * kMiB);
  // With more, holes are what counts.
  for (Allocator* a : std::initializer_list<Allocator*>{&expandable, &caching}) {
    a->allocate(2, 12 * kMiB);
    a->allocate(3, 16 * kMiB);
    a->free(1);
    a->free(2);
    a->allocate(4, 24 * kMiB);
  }
  EXPECT_EQ(expandable.reserved(), (2 + 40) * kMiB);
  EXPECT_EQ(caching.reserved(), (2 + 12 + 12 + 16 + 24) * kMiB);
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
