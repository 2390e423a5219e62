// Plans on the CPU device, beside what they promise on every device: several devices, slow links.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device_cpu/cpu_subject.h"
#include "lower/compose.h"
#include "runtime/executor.h"
#include "support/fault_runs.h"
#include "support/parallel_program.h"

namespace tidepool {
namespace {

using testing::cpu_options;
using testing::lower_at_random;
using testing::TagRunner;

class ExecutorOnCpu : public testing::CpuTest {};

TEST_F(ExecutorOnCpu, ASlowLinkChangesNoByte) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const auto plan = testing::random_plan(seed, {5, 128});
    ASSERT_TRUE(plan);
    CpuDeviceOptions o = cpu_options();
    // One direction, the other, or both.
    if (seed % 3 != 1) o.to_host = {10e6, Nanos{50'000}};
    if (seed % 3 != 2) o.to_device = {10e6, Nanos{50'000}};
    CpuDevice device(o);
    const testing::FaultOutcome outcome = testing::run_plan_on(device, *plan, 3);
    EXPECT_TRUE(outcome.finished) << outcome.error;
    EXPECT_TRUE(outcome.values_right);
  }
}

TEST_F(ExecutorOnCpu, ValuesOnSeveralDevicesAreThoseOfTheProgram) {
  for (std::int32_t devices = 2; devices <= 4; ++devices) {
    SCOPED_TRACE(devices);
    const auto p = testing::ParallelTraining(4).on(devices);
    const Lowered part = lower_at_random(p.part, 3);
    const Machine machine = with_devices(testing::random_machine(3), devices);
    const auto composed = compose({p.part, part.plan, p.whole, p.replication, machine}, {});
    ASSERT_TRUE(composed) << composed.error().message;
    TagRunner meaning(p.whole);
    testing::run_in_order(p.whole, std::vector<std::int32_t>(p.whole.ops.size(), 0), 4, meaning);
    CpuDeviceOptions options = cpu_options();
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
  const Lowered part = lower_at_random(p.part, 3);
  const Machine machine = with_devices(testing::random_machine(3), 2);
  const auto composed = compose({p.part, part.plan, p.whole, p.replication, machine}, {});
  ASSERT_TRUE(composed) << composed.error().message;
  for (const std::int64_t launch : {30, 55, 80}) {
    CpuDeviceOptions options = cpu_options();
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
  const Lowered lowered = lower_at_random(program, 1);
  for (std::int64_t copy = 0; copy < 60; copy += 7) {
    CpuDeviceOptions options = cpu_options();
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

TEST_F(ExecutorOnCpu, TimingsAreKeptOfAllButHostOps) {
  const Program program = testing::random_program(1);
  const Lowered lowered = lower_at_random(program, 1);
  CpuDevice device(cpu_options());
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
        EXPECT_EQ(iteration[i].end > Nanos{0}, x.kind == InstructionKind::copy);
        EXPECT_GE(iteration[i].end, iteration[i].start);
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
