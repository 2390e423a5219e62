// What a plan promises on every device, once for all of them: the values are those of the program,
// late copies change no byte, faults end in a DeviceError and nobody hangs. Subjects are those of
// every_device.h.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "device/faults.h"
#include "support/fault_runs.h"

namespace tidepool::testing {

constexpr std::int64_t kIterations = 3;

template <class Body>
void for_each_plan(std::uint64_t programs, Body body) {
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    const auto plan = random_plan(seed, {5, 128});
    ASSERT_TRUE(plan);
    body(*plan, seed);
  }
}

inline void expect_right(const FaultOutcome& outcome) {
  EXPECT_TRUE(outcome.finished) << outcome.error;
  EXPECT_TRUE(outcome.values_right);
}

/// An op of this place that throws in its second iteration.
template <class Runner>
class UnhappyRunner : public Runner {
 public:
  UnhappyRunner(const Program& program, OpPlace place) : Runner(program) {
    while (program.ops[static_cast<std::size_t>(failing_)].place != place) ++failing_;
  }
  void launch(const OpCall& call, NativeStream stream) override {
    if (call.op == failing_ && call.iteration == 1) throw std::runtime_error("unhappy");
    Runner::launch(call, stream);
  }

 private:
  OpId failing_ = 0;
};

template <class Subject>
class PlansOnEveryDevice : public Subject::Fixture {
 protected:
  using Runner = typename Subject::Runner;
  static FaultOutcome run(const RandomPlan& plan, const FaultPlan& faults = {}) {
    return run_plan_on<Runner>(*Subject::make(faults), plan, kIterations);
  }
  static FaultOutcome run_reactively(const RandomPlan& plan, const FaultPlan& faults = {}) {
    return run_reactively_on<Runner>(*Subject::make(faults), plan, kIterations);
  }
};
TYPED_TEST_SUITE_P(PlansOnEveryDevice);

TYPED_TEST_P(PlansOnEveryDevice, ValuesAreThoseOfTheProgram) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = random_program(seed);
    const auto device = TypeParam::make();
    const Lowered lowered = lower_at_random(program, seed, device->alignment());
    TagRunner meaning(program);
    run_in_order(program, lowered.strategy.algorithms, 6, meaning);
    typename TypeParam::Runner runner(program);
    Executor executor(program, lowered.plan, *device, runner);
    executor.enter();
    executor.run(4);
    executor.run(2);
    executor.exit();
    EXPECT_EQ(runner.seen(), meaning.seen());
    EXPECT_EQ(runner.final_values(), meaning.final_values());
  }
}

TYPED_TEST_P(PlansOnEveryDevice, AnErrorInTheRunnerEndsInADeviceErrorWithItsMessage) {
  const Program program = random_program(1);
  for (const OpPlace place : {OpPlace::device, OpPlace::host}) {
    const auto device = TypeParam::make();
    const Lowered lowered = lower_at_random(program, 1, device->alignment());
    UnhappyRunner<typename TypeParam::Runner> runner(program, place);
    Executor executor(program, lowered.plan, *device, runner);
    executor.enter();
    try {
      executor.run(5);
      FAIL() << "no exception";
    } catch (const DeviceError& error) {
      EXPECT_STREQ(error.what(), "unhappy");
    }
  }
}

TYPED_TEST_P(PlansOnEveryDevice, RandomPlansAndRunsWithoutAPlanAreRight) {
  for_each_plan(16, [](const RandomPlan& plan, std::uint64_t) {
    expect_right(TestFixture::run(plan));
    expect_right(TestFixture::run_reactively(plan));
  });
}

TYPED_TEST_P(PlansOnEveryDevice, LateCopiesChangeNoByte) {
  for_each_plan(16, [](const RandomPlan& plan, std::uint64_t seed) {
    FaultPlan faults;
    faults.most_late = Nanos{300'000};
    faults.seed = seed;
    expect_right(TestFixture::run(plan, faults));
    expect_right(TestFixture::run_reactively(plan, faults));
  });
}

TYPED_TEST_P(PlansOnEveryDevice, AFailedCopyOfEitherDirectionEndsTheRunWhileOthersAreLate) {
  for_each_plan(6, [](const RandomPlan& plan, std::uint64_t seed) {
    for (const bool to_host : {true, false}) {
      const std::int64_t count = copies_in(plan, to_host);
      for (const std::int64_t number : {std::int64_t{0}, 2 * count - 1}) {
        if (count == 0) continue;
        FaultPlan faults;
        faults.most_late = Nanos{50'000};
        faults.seed = seed;
        faults.fail_copy = {number, to_host ? CopyRoute::to_host : CopyRoute::to_device};
        const FaultOutcome outcome = TestFixture::run(plan, faults);
        EXPECT_FALSE(outcome.finished);
        EXPECT_THAT(outcome.error,
                    ::testing::HasSubstr(to_host ? "to the host failed" : "to the device failed"));
      }
    }
  });
}

TYPED_TEST_P(PlansOnEveryDevice, AKernelThatThrowsEndsTheRun) {
  for_each_plan(6, [](const RandomPlan& plan, std::uint64_t seed) {
    FaultPlan faults;
    faults.fail_launch = static_cast<std::int64_t>(5 * seed);
    EXPECT_THAT(TestFixture::run(plan, faults).error, ::testing::HasSubstr("a kernel failed"));
    EXPECT_THAT(TestFixture::run_reactively(plan, faults).error,
                ::testing::HasSubstr("a kernel failed"));
  });
}

TYPED_TEST_P(PlansOnEveryDevice, HostMemoryUsedUpIsADeviceError) {
  for_each_plan(2, [](const RandomPlan& plan, std::uint64_t) {
    FaultPlan faults;
    faults.host_memory = plan.lowered.plan.host_bytes() - 1;
    EXPECT_THAT(TestFixture::run(plan, faults).error, ::testing::HasSubstr("host arena"));
  });
}

REGISTER_TYPED_TEST_SUITE_P(PlansOnEveryDevice, ValuesAreThoseOfTheProgram,
                            AnErrorInTheRunnerEndsInADeviceErrorWithItsMessage,
                            RandomPlansAndRunsWithoutAPlanAreRight, LateCopiesChangeNoByte,
                            AFailedCopyOfEitherDirectionEndsTheRunWhileOthersAreLate,
                            AKernelThatThrowsEndsTheRun, HostMemoryUsedUpIsADeviceError);

}  // namespace tidepool::testing
