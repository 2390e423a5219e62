#include "trace/allocators/native.h"

#include <gtest/gtest.h>

namespace tidepool {
namespace {

TEST(NativeAllocator, ReservesWhatIsLive) {
  NativeAllocator a;
  a.allocate(0, 100);
  a.allocate(1, 1);
  EXPECT_EQ(a.reserved(), 101);
  a.free(0);
  EXPECT_EQ(a.reserved(), 1);
  a.allocate(0, 5);
  EXPECT_EQ(a.reserved(), 6);
}

}  // namespace
}  // namespace tidepool
