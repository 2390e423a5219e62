// Turns on a bus, at stated times: no clock is read.
#include "device/file/shared_bus.h"

#include <gtest/gtest.h>

namespace tidepool {
namespace {

SharedBus::Time at_us(std::int64_t us) {
  return SharedBus::Time{} + std::chrono::seconds(1) + std::chrono::microseconds(us);
}

TEST(SharedBus, GivesTurnsOneAfterTheOther) {
  SharedBus bus(1e9);
  EXPECT_EQ(bus.take(1000, at_us(0)), at_us(1));
  EXPECT_EQ(bus.take(1000, at_us(0)), at_us(2)) << "of another copy, at the same time";
  EXPECT_EQ(bus.take(2000, at_us(1)), at_us(4));
}

TEST(SharedBus, IsFreeAfterAPause) {
  SharedBus bus(1e9);
  bus.take(1000, at_us(0));
  EXPECT_EQ(bus.take(1000, at_us(10)), at_us(11)) << "what was not used is gone";
}

TEST(SharedBus, WithoutALimitNobodyWaits) {
  SharedBus bus(0);
  EXPECT_EQ(bus.take(1 << 30, at_us(5)), at_us(5));
}

}  // namespace
}  // namespace tidepool
