// Faults on a GPU: late copies change no byte, others end in a DeviceError and nobody hangs; with
// and without a plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/cuda/cuda_device.h"
#include "device_cuda/cuda_tag_runner.h"
#include "support/cuda.h"
#include "support/fault_runs.h"

namespace tidepool {
namespace {

using testing::CudaTagRunner;
using testing::FaultOutcome;
using ::testing::HasSubstr;
using testing::random_plan;
using testing::RandomPlan;

constexpr std::int64_t kIterations = 3;

class FaultsOnCuda : public testing::CudaTest {
 protected:
  template <class Body>
  static void for_each_plan(std::uint64_t programs, Body body) {
    for (std::uint64_t seed = 0; seed < programs; ++seed) {
      SCOPED_TRACE(seed);
      const auto plan = random_plan(seed, {5, 128});
      ASSERT_TRUE(plan);
      body(*plan, seed);
    }
  }
  static CudaDeviceOptions options() {
    CudaDeviceOptions o;
    o.libraries = false;
    return o;
  }
  static FaultOutcome run_plan_on(Device& device, const RandomPlan& plan) {
    return testing::run_plan_on<CudaTagRunner>(device, plan, kIterations);
  }
  static FaultOutcome run_reactively_on(Device& device, const RandomPlan& plan) {
    return testing::run_reactively_on<CudaTagRunner>(device, plan, kIterations);
  }
  static void expect_right(const FaultOutcome& outcome) {
    EXPECT_TRUE(outcome.finished) << outcome.error;
    EXPECT_TRUE(outcome.values_right);
  }
};

TEST_F(FaultsOnCuda, RandomPlansAndRunsWithoutAPlanAreRight) {
  for_each_plan(16, [](const RandomPlan& plan, std::uint64_t) {
    CudaDevice device(options());
    expect_right(run_plan_on(device, plan));
    CudaDevice other(options());
    expect_right(run_reactively_on(other, plan));
  });
}

TEST_F(FaultsOnCuda, LateCopiesChangeNoByte) {
  for_each_plan(16, [](const RandomPlan& plan, std::uint64_t seed) {
    CudaDeviceOptions o = options();
    o.faults.most_late = Nanos{300'000};
    o.faults.seed = seed;
    CudaDevice device(o);
    expect_right(run_plan_on(device, plan));
    CudaDevice other(o);
    expect_right(run_reactively_on(other, plan));
  });
}

TEST_F(FaultsOnCuda, AFailedCopyOfEitherDirectionEndsTheRun) {
  for_each_plan(6, [](const RandomPlan& plan, std::uint64_t) {
    for (const bool to_host : {true, false}) {
      const std::int64_t count = testing::copies_in(plan, to_host);
      for (const std::int64_t number : {std::int64_t{0}, 2 * count - 1}) {
        if (count == 0) continue;
        CudaDeviceOptions o = options();
        o.faults.fail_copy = {number, to_host ? CopyRoute::to_host : CopyRoute::to_device};
        CudaDevice device(o);
        const FaultOutcome outcome = run_plan_on(device, plan);
        EXPECT_FALSE(outcome.finished);
        EXPECT_THAT(outcome.error,
                    HasSubstr(to_host ? "to the host failed" : "to the device failed"));
      }
    }
  });
}

TEST_F(FaultsOnCuda, AKernelThatThrowsEndsTheRun) {
  for_each_plan(6, [](const RandomPlan& plan, std::uint64_t seed) {
    CudaDeviceOptions o = options();
    o.faults.fail_launch = static_cast<std::int64_t>(5 * seed);
    CudaDevice device(o);
    EXPECT_THAT(run_plan_on(device, plan).error, HasSubstr("a kernel failed"));
    CudaDevice other(o);
    EXPECT_THAT(run_reactively_on(other, plan).error, HasSubstr("a kernel failed"));
  });
}

TEST_F(FaultsOnCuda, HostMemoryUsedUpIsADeviceError) {
  for_each_plan(2, [](const RandomPlan& plan, std::uint64_t) {
    CudaDeviceOptions o = options();
    o.faults.host_memory = plan.lowered.plan.host_bytes() - 1;
    CudaDevice device(o);
    EXPECT_THAT(run_plan_on(device, plan).error, HasSubstr("host arena"));
  });
}

}  // namespace
}  // namespace tidepool
