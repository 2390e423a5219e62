#include "device/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tidepool {
namespace {

constexpr CopyRoute to_host = CopyRoute::to_host;
constexpr CopyRoute to_device = CopyRoute::to_device;

TEST(Faults, NothingHappensUnlessAskedFor) {
  FaultInjector faults{FaultPlan{}};
  faults.open({1 << 20, 1 << 20, {}});
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(faults.copy(to_host).fails);
    EXPECT_EQ(faults.copy(to_device).late, Nanos{0});
    EXPECT_FALSE(faults.launch().fails);
  }
}

TEST(Faults, TheNumberedCopyOfItsDirectionFails) {
  FaultPlan plan;
  plan.fail_copy = {1, to_host};
  FaultInjector faults(plan);
  EXPECT_FALSE(faults.copy(to_device).fails);
  EXPECT_FALSE(faults.copy(to_host).fails);
  EXPECT_FALSE(faults.copy(to_device).fails);
  EXPECT_TRUE(faults.copy(to_host).fails);
  EXPECT_FALSE(faults.copy(to_host).fails);
}

TEST(Faults, WithoutADirectionAllCopiesCount) {
  FaultPlan plan;
  plan.fail_copy = {1, {}};
  FaultInjector faults(plan);
  EXPECT_FALSE(faults.copy(to_device).fails);
  EXPECT_TRUE(faults.copy(to_host).fails);
}

TEST(Faults, DelaysFollowFromTheSeed) {
  const auto delays = [](std::uint64_t seed) {
    FaultPlan plan;
    plan.most_late = Nanos{1000};
    plan.seed = seed;
    FaultInjector faults(plan);
    std::vector<Nanos> list;
    for (int i = 0; i < 50; ++i) {
      list.push_back(faults.copy(to_host).late);
      EXPECT_GE(list.back(), Nanos{0});
      EXPECT_LT(list.back(), Nanos{1000});
    }
    return list;
  };
  EXPECT_EQ(delays(1), delays(1));
  EXPECT_NE(delays(1), delays(2));
}

TEST(Faults, AHostArenaAboveTheMemoryIsRefused) {
  FaultPlan plan;
  plan.host_memory = 1024;
  const FaultInjector faults(plan);
  faults.open({1 << 20, 1024, {}});
  EXPECT_THROW(faults.open({0, 1025, {}}), DeviceError);
}

}  // namespace
}  // namespace tidepool
