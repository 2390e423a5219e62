// Random plans on real threads: the values are those of the program, faults end in an exception.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <stdexcept>

#include "device/cpu/cpu_device.h"
#include "lower/compose.h"
#include "lower/lower.h"
#include "runtime/executor.h"
#include "support/parallel_program.h"
#include "support/random_program.h"
#include "support/tag_runner.h"

namespace tidepool {
namespace {

using testing::TagRunner;

class ExecutorOnCpu : public ::testing::Test {
 protected:
  void SetUp() override { ::alarm(60); }
  void TearDown() override { ::alarm(0); }

  static Lowered lower(const Program& program, std::uint64_t seed) {
    Lowering lowering(program, testing::random_machine(seed));
    const Bytes least = smallest_budget(program, 64).bytes;
    const Strategy strategy = testing::random_strategy(program, lowering.index(), 0.7, seed);
    return *lowering.lower(strategy, {least + least / 4, 0});
  }
};

TEST_F(ExecutorOnCpu, ValuesAreThoseOfTheProgram) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Lowered lowered = lower(program, seed);
    TagRunner meaning(program);
    testing::run_in_order(program, lowered.strategy.algorithms, 4, meaning);
    CpuDeviceOptions options;
    options.threads = 1;
    if (seed % 2 == 0) options.to_host = {500e6, Nanos{20'000}};
    if (seed % 3 == 0) options.to_device = {500e6, Nanos{20'000}};
    CpuDevice device(options);
    TagRunner runner(program);
    Executor executor(program, lowered.plan, device, runner);
    executor.enter();
    executor.run(3);
    executor.run(1);
    executor.exit();
    EXPECT_EQ(runner.seen(), meaning.seen());
    EXPECT_EQ(runner.final_values(), meaning.final_values());
  }
}

TEST_F(ExecutorOnCpu, ValuesOnSeveralDevicesAreThoseOfTheProgram) {
  for (std::int32_t devices = 2; devices <= 4; ++devices) {
    SCOPED_TRACE(devices);
    const auto p = testing::ParallelTraining(4).on(devices);
    const Lowered part = lower(p.part, 3);
    const Machine machine = with_devices(testing::random_machine(3), devices);
    const auto composed = compose({p.part, part.plan, p.whole, p.replication, machine}, {});
    ASSERT_TRUE(composed) << composed.error().message;
    TagRunner meaning(p.whole);
    testing::run_in_order(p.whole, std::vector<std::int32_t>(p.whole.ops.size(), 0), 4, meaning);
    CpuDeviceOptions options;
    options.threads = 1;
    options.to_host = options.to_device = {500e6, Nanos{20'000}};
    options.bus_to_host = options.bus_to_device = 500e6;
    CpuDevice device(options);
    TagRunner runner(p.whole);
    Executor executor(p.whole, composed->plan, device, runner);
    executor.enter();
    executor.run(4);
    executor.exit();
    EXPECT_EQ(runner.seen(), meaning.seen());
    EXPECT_EQ(runner.final_values(), meaning.final_values());
  }
}

TEST_F(ExecutorOnCpu, ADeviceOfSeveralThatFailsStoresNothing) {
  const auto p = testing::ParallelTraining(4).on(2);
  const Lowered part = lower(p.part, 3);
  const Machine machine = with_devices(testing::random_machine(3), 2);
  const auto composed = compose({p.part, part.plan, p.whole, p.replication, machine}, {});
  ASSERT_TRUE(composed) << composed.error().message;
  for (const std::int64_t launch : {30, 55, 80}) {
    CpuDeviceOptions options;
    options.threads = 1;
    options.faults.fail_launch = launch;
    CpuDevice device(options);
    TagRunner runner(p.whole);
    Executor executor(p.whole, composed->plan, device, runner);
    executor.enter();
    EXPECT_THROW(executor.run(6), DeviceError) << launch;
    EXPECT_TRUE(runner.final_values().empty());
  }
}

TEST_F(ExecutorOnCpu, EveryFailingCopyEndsInADeviceError) {
  const Program program = testing::random_program(1);
  const Lowered lowered = lower(program, 1);
  for (std::int64_t copy = 0; copy < 60; copy += 7) {
    CpuDeviceOptions options;
    options.threads = 1;
    options.faults.fail_copy = {copy, {}};
    CpuDevice device(options);
    TagRunner runner(program);
    Executor executor(program, lowered.plan, device, runner);
    EXPECT_THROW(
        {
          executor.enter();
          executor.run(4);
          executor.exit();
        },
        DeviceError)
        << copy;
  }
}

TEST_F(ExecutorOnCpu, AnErrorInTheRunnerEndsInADeviceErrorWithItsMessage) {
  struct Failing : TagRunner {
    using TagRunner::TagRunner;
    void launch(const OpCall& call, NativeStream stream) override {
      if (call.op == 4 && call.iteration == 1) throw std::runtime_error("the kernel is unhappy");
      TagRunner::launch(call, stream);
    }
  };
  const Program program = testing::random_program(1);
  const Lowered lowered = lower(program, 1);
  CpuDevice device(CpuDeviceOptions{1, {}, {}, {}});
  Failing runner(program);
  Executor executor(program, lowered.plan, device, runner);
  executor.enter();
  try {
    executor.run(5);
    FAIL() << "no exception";
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(), "the kernel is unhappy");
  }
}

TEST_F(ExecutorOnCpu, TimingsAreKeptForComputeInstructionsOnly) {
  const Program program = testing::random_program(1);
  const Lowered lowered = lower(program, 1);
  CpuDevice device(CpuDeviceOptions{1, {}, {}, {}});
  TagRunner runner(program);
  Executor executor(program, lowered.plan, device, runner);
  executor.enter();
  executor.run(1);
  EXPECT_TRUE(executor.timings().empty());
  executor.record_timings();
  executor.run(5);
  ASSERT_EQ(executor.timings().size(), 5u);
  Nanos before{0};
  for (const auto& iteration : executor.timings()) {
    ASSERT_EQ(iteration.size(), lowered.plan.steady.instructions.size());
    for (std::size_t i = 0; i < iteration.size(); ++i) {
      const Instruction& x = lowered.plan.steady.instructions[i];
      const bool compute =
          lowered.plan.streams[static_cast<std::size_t>(x.stream)].kind == StreamKind::compute;
      if (!compute) {
        EXPECT_EQ(iteration[i].start, Nanos{0});
        continue;
      }
      EXPECT_GE(iteration[i].start, before) << "ops of one stream follow each other";
      EXPECT_GE(iteration[i].end, iteration[i].start);
      before = iteration[i].end;
    }
  }
}

}  // namespace
}  // namespace tidepool
