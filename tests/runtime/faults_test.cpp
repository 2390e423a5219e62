// Random programs under random strategies on a fake device that is slow, late or broken: the right
// values or a DeviceError, nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_device.h"
#include "support/fault_runs.h"

namespace tidepool {
namespace {

using testing::FaultOutcome;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::random_plan;
using testing::RandomPlan;
using testing::run_plan_on;
using testing::run_reactively_on;

constexpr std::int64_t kFaultIterations = 4;

/// The speeds the plan was made for, copies `slower` times slower.
FakeScript speeds_of(const RandomPlan& c, std::int64_t slower = 1) {
  FakeScript script;
  script.op_time = [&c](const WorkLabel& label) {
    if (label.op < 0) return Nanos{0};
    const Op& op = c.program.ops[static_cast<std::size_t>(label.op)];
    return op.algorithms[static_cast<std::size_t>(label.algorithm)].time;
  };
  script.copy_time = [&c, slower](CopyRoute direction, Bytes bytes) {
    const LinkSpeed& link =
        direction == CopyRoute::to_host ? c.machine.to_host() : c.machine.to_device();
    return link.time(bytes) * slower;
  };
  return script;
}

class FaultsTest : public ::testing::TestWithParam<int> {
 protected:
  static constexpr int kPrograms = 12;

  template <class Body>
  static void for_each_plan(Body body) {
    for (int i = 0; i < kPrograms; ++i) {
      const auto seed = static_cast<std::uint64_t>(GetParam() * 1000 + i);
      SCOPED_TRACE(seed);
      const auto plan = random_plan(seed, {6, 256});
      ASSERT_TRUE(plan);
      body(*plan, seed);
      if (HasFatalFailure()) return;
    }
  }
};

void expect_right(const FaultOutcome& outcome, const FakeDevice& device) {
  EXPECT_TRUE(outcome.finished) << outcome.error;
  EXPECT_TRUE(outcome.values_right);
  EXPECT_THAT(device.races(), IsEmpty());
}

TEST_P(FaultsTest, LateCopiesChangeNoByte) {
  for_each_plan([](const RandomPlan& plan, std::uint64_t seed) {
    for (const std::int64_t most_late : {100, 10'000, 1'000'000}) {
      FakeScript script = speeds_of(plan);
      script.faults.most_late = Nanos{most_late};
      script.faults.seed = seed;
      FakeDevice device(script);
      expect_right(run_plan_on(device, plan, kFaultIterations), device);
    }
  });
}

TEST_P(FaultsTest, ASlowLinkChangesNoByte) {
  for_each_plan([](const RandomPlan& plan, std::uint64_t) {
    for (const std::int64_t slower : {2, 100, 10'000}) {
      FakeDevice device(speeds_of(plan, slower));
      expect_right(run_plan_on(device, plan, kFaultIterations), device);
    }
  });
}

TEST_P(FaultsTest, ASlowAndLateLinkChangesNoByteWithoutAPlanEither) {
  for_each_plan([](const RandomPlan& plan, std::uint64_t seed) {
    FakeScript script = speeds_of(plan, 50);
    script.faults.most_late = Nanos{100'000};
    script.faults.seed = seed;
    FakeDevice device(script);
    expect_right(run_reactively_on(device, plan, kFaultIterations), device);
  });
}

TEST_P(FaultsTest, AFailedCopyOfEitherDirectionEndsTheRunWithItsSizeAndWay) {
  for_each_plan([](const RandomPlan& plan, std::uint64_t) {
    for (const bool to_host : {true, false}) {
      const std::int64_t count = testing::copies_in(plan, to_host);
      for (const std::int64_t number : {std::int64_t{0}, count / 2, 2 * count - 1}) {
        if (number < 0 || count == 0) continue;
        FakeScript script = speeds_of(plan);
        script.faults.fail_copy = {number, to_host ? CopyRoute::to_host : CopyRoute::to_device};
        FakeDevice device(script);
        const FaultOutcome outcome = run_plan_on(device, plan, kFaultIterations);
        EXPECT_FALSE(outcome.finished);
        EXPECT_THAT(outcome.error,
                    HasSubstr(to_host ? "to the host failed" : "to the device failed"));
      }
    }
  });
}

TEST_P(FaultsTest, AKernelThatThrowsEndsTheRun) {
  for_each_plan([](const RandomPlan& plan, std::uint64_t seed) {
    for (const std::int64_t launch : {std::int64_t{0}, static_cast<std::int64_t>(seed % 40)}) {
      FakeScript script = speeds_of(plan);
      script.faults.fail_launch = launch;
      FakeDevice device(script);
      EXPECT_THAT(run_plan_on(device, plan, kFaultIterations).error, HasSubstr("a kernel failed"));
      FakeDevice other(script);
      EXPECT_THAT(run_reactively_on(other, plan, kFaultIterations).error,
                  HasSubstr("a kernel failed"));
    }
  });
}

TEST_P(FaultsTest, HostMemoryUsedUpIsSaidBeforeAnythingRuns) {
  for_each_plan([](const RandomPlan& plan, std::uint64_t) {
    FakeScript script = speeds_of(plan);
    script.faults.host_memory = plan.lowered.plan.host_bytes() - 1;
    FakeDevice device(script);
    EXPECT_THAT(run_plan_on(device, plan, kFaultIterations).error, HasSubstr("host arena"));
    EXPECT_THAT(device.records(), IsEmpty());
    script.faults.host_memory = plan.lowered.plan.host_bytes();
    FakeDevice enough(script);
    expect_right(run_plan_on(enough, plan, kFaultIterations), enough);
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, FaultsTest, ::testing::Range(0, 4));

}  // namespace
}  // namespace tidepool
