#include "trace/allocators/cnmem.h"

#include <gtest/gtest.h>

namespace tidepool {
namespace {

TEST(CnMemAllocator, RoundsTo512AndAsksTheDriverForExactlyThat) {
  CnMemAllocator a;
  a.allocate(0, 1);
  EXPECT_EQ(a.reserved(), 512);
  a.allocate(1, 513);
  EXPECT_EQ(a.reserved(), 512 + 1024);
}

TEST(CnMemAllocator, SplitsWheneverTheSizeDiffers) {
  CnMemAllocator a;
  a.allocate(0, 10 * 512);
  a.free(0);
  a.allocate(1, 9 * 512);
  a.allocate(2, 512);
  EXPECT_EQ(a.reserved(), 10 * 512);
}

TEST(CnMemAllocator, DoesNotMergeDriverAllocations) {
  CnMemAllocator a;
  a.allocate(0, 512);
  a.allocate(1, 512);
  a.free(0);
  a.free(1);
  a.allocate(2, 1024);
  EXPECT_EQ(a.reserved(), 2048);
}

TEST(CnMemAllocator, MergesInsideOne) {
  CnMemAllocator a(4 * 512);
  a.allocate(0, 512);
  a.allocate(1, 512);
  a.allocate(2, 1024);
  a.free(1);
  a.free(0);
  a.allocate(3, 1024);
  EXPECT_EQ(a.reserved(), 4 * 512);
}

TEST(CnMemAllocator, TheReservationCountsFromTheStart) {
  CnMemAllocator a(1000);
  EXPECT_EQ(a.reserved(), 1024);
  a.allocate(0, 1024);
  EXPECT_EQ(a.reserved(), 1024);
  a.allocate(1, 1);
  EXPECT_EQ(a.reserved(), 1536);
}

}  // namespace
}  // namespace tidepool
