// The same on real threads: late copies and slow links change no byte, faults end in a DeviceError
// and nobody hangs. How long anything takes is not looked at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "device/cpu/cpu_device.h"
#include "support/fault_runs.h"

namespace tidepool {
namespace {

using testing::FaultOutcome;
using ::testing::HasSubstr;
using testing::random_plan;
using testing::RandomPlan;
using testing::run_plan_on;
using testing::run_reactively_on;

constexpr std::int64_t kIterations = 3;

class FaultsOnCpu : public ::testing::Test {
 protected:
  void SetUp() override { ::alarm(120); }
  void TearDown() override { ::alarm(0); }

  template <class Body>
  static void for_each_plan(std::uint64_t programs, Body body) {
    for (std::uint64_t seed = 0; seed < programs; ++seed) {
      SCOPED_TRACE(seed);
      const auto plan = random_plan(seed, {5, 128});
      ASSERT_TRUE(plan);
      body(*plan, seed);
    }
  }
  static CpuDeviceOptions options() {
    CpuDeviceOptions o;
    o.threads = 1;
    return o;
  }
  static void expect_right(const FaultOutcome& outcome) {
    EXPECT_TRUE(outcome.finished) << outcome.error;
    EXPECT_TRUE(outcome.values_right);
  }
};

TEST_F(FaultsOnCpu, LateCopiesChangeNoByte) {
  for_each_plan(16, [](const RandomPlan& plan, std::uint64_t seed) {
    CpuDeviceOptions o = options();
    o.faults.most_late = Nanos{300'000};
    o.faults.seed = seed;
    CpuDevice device(o);
    expect_right(run_plan_on(device, plan, kIterations));
  });
}

TEST_F(FaultsOnCpu, ASlowLinkChangesNoByte) {
  for_each_plan(12, [](const RandomPlan& plan, std::uint64_t seed) {
    CpuDeviceOptions o = options();
    // One direction, the other, or both.
    if (seed % 3 != 1) o.to_host = {10e6, Nanos{50'000}};
    if (seed % 3 != 2) o.to_device = {10e6, Nanos{50'000}};
    CpuDevice device(o);
    expect_right(run_plan_on(device, plan, kIterations));
  });
}

TEST_F(FaultsOnCpu, LateCopiesChangeNoByteWithoutAPlanEither) {
  for_each_plan(6, [](const RandomPlan& plan, std::uint64_t seed) {
    CpuDeviceOptions o = options();
    o.faults.most_late = Nanos{100'000};
    o.faults.seed = seed;
    CpuDevice device(o);
    expect_right(run_reactively_on(device, plan, kIterations));
  });
}

TEST_F(FaultsOnCpu, AFailedCopyOfEitherDirectionEndsTheRunWhileOthersAreLate) {
  for_each_plan(6, [](const RandomPlan& plan, std::uint64_t seed) {
    for (const bool to_host : {true, false}) {
      const std::int64_t count = testing::copies_in(plan, to_host);
      for (const std::int64_t number : {std::int64_t{0}, 2 * count - 1}) {
        if (count == 0) continue;
        CpuDeviceOptions o = options();
        o.faults.most_late = Nanos{50'000};
        o.faults.seed = seed;
        o.faults.fail_copy = {number, to_host ? CopyRoute::to_host : CopyRoute::to_device};
        CpuDevice device(o);
        const FaultOutcome outcome = run_plan_on(device, plan, kIterations);
        EXPECT_FALSE(outcome.finished);
        EXPECT_THAT(outcome.error,
                    HasSubstr(to_host ? "to the host failed" : "to the device failed"));
      }
    }
  });
}

TEST_F(FaultsOnCpu, AKernelThatThrowsEndsTheRun) {
  for_each_plan(6, [](const RandomPlan& plan, std::uint64_t seed) {
    CpuDeviceOptions o = options();
    o.faults.fail_launch = static_cast<std::int64_t>(5 * seed);
    CpuDevice device(o);
    EXPECT_THAT(run_plan_on(device, plan, kIterations).error, HasSubstr("a kernel failed"));
    CpuDevice other(o);
    EXPECT_THAT(run_reactively_on(other, plan, kIterations).error, HasSubstr("a kernel failed"));
  });
}

TEST_F(FaultsOnCpu, HostMemoryUsedUpIsADeviceError) {
  for_each_plan(2, [](const RandomPlan& plan, std::uint64_t) {
    CpuDeviceOptions o = options();
    o.faults.host_memory = plan.lowered.plan.host_bytes() - 1;
    CpuDevice device(o);
    EXPECT_THAT(run_plan_on(device, plan, kIterations).error, HasSubstr("host arena"));
  });
}

}  // namespace
}  // namespace tidepool
