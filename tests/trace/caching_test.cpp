#include "trace/allocators/caching.h"

#include <gtest/gtest.h>

namespace tidepool {
namespace {

TEST(CachingAllocator, SegmentSizes) {
  const auto reserved = [](Bytes bytes) {
    CachingAllocator a;
    a.allocate(0, bytes);
    return a.reserved();
  };
  EXPECT_EQ(reserved(1), 2 * kMiB);
  EXPECT_EQ(reserved(kMiB), 2 * kMiB);
  EXPECT_EQ(reserved(kMiB + 1), 20 * kMiB);
  EXPECT_EQ(reserved(10 * kMiB - 512), 20 * kMiB);
  EXPECT_EQ(reserved(10 * kMiB), 10 * kMiB);
  EXPECT_EQ(reserved(11 * kMiB), 12 * kMiB);
}

TEST(CachingAllocator, PoolsDoNotShare) {
  CachingAllocator a;
  a.allocate(0, 2 * kMiB);
  a.free(0);
  a.allocate(1, 1000);
  EXPECT_EQ(a.reserved(), 22 * kMiB);
}

TEST(CachingAllocator, TheLargePoolSplitsOnlyWhenMoreThanOneMiBRemains) {
  CachingAllocator a;
  a.allocate(0, 19 * kMiB);  // its own segment of 20 MiB: 1 MiB remains, not split
  a.allocate(1, 15 * kMiB);  // 16 MiB
  EXPECT_EQ(a.reserved(), 36 * kMiB);
  a.free(0);
  a.allocate(2, 17 * kMiB);  // from the 20 MiB: 3 MiB remain
  a.allocate(3, 3 * kMiB);
  EXPECT_EQ(a.reserved(), 36 * kMiB);
}

TEST(CachingAllocator, TheSmallPoolSplitsDownTo512) {
  CachingAllocator a;
  a.allocate(0, kMiB);
  a.allocate(1, kMiB - 512);
  a.allocate(2, 512);
  EXPECT_EQ(a.reserved(), 2 * kMiB);
  a.allocate(3, 1);
  EXPECT_EQ(a.reserved(), 4 * kMiB);
}

TEST(CachingAllocator, MergesInsideASegmentAndKeepsIt) {
  CachingAllocator a;
  a.allocate(0, 5 * kMiB);
  a.allocate(1, 9 * kMiB);
  a.allocate(2, 6 * kMiB);
  EXPECT_EQ(a.reserved(), 20 * kMiB);
  a.free(1);
  a.free(0);
  a.allocate(3, 14 * kMiB);
  EXPECT_EQ(a.reserved(), 20 * kMiB);
}

/// 20 MiB are not in use when 40 are wanted of a driver that has 50.
TEST(CachingAllocator, WhatIsNotInUseGoesBackToADriverThatHasNoMore) {
  const auto reserved = [](Bytes driver) {
    CachingAllocator a(driver);
    a.allocate(0, 5 * kMiB);
    a.allocate(1, 1000);
    a.free(0);
    a.allocate(2, 40 * kMiB);
    return a.reserved();
  };
  EXPECT_EQ(reserved(100 * kMiB), 62 * kMiB);
  EXPECT_EQ(reserved(50 * kMiB), 42 * kMiB) << "the small segment is in use";
  EXPECT_EQ(reserved(30 * kMiB), 42 * kMiB) << "more than there is";
}

}  // namespace
}  // namespace tidepool
