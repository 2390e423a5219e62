// Random plans on a GPU: the values are those of the program, faults end in an exception.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "device/cuda/cuda_device.h"
#include "device_cuda/cuda_tag_runner.h"
#include "lower/lower.h"
#include "runtime/executor.h"
#include "support/cuda.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

using testing::CudaTagRunner;
using testing::TagRunner;

constexpr Bytes kAlignment = 512;

class ExecutorOnCuda : public testing::CudaTest {
 protected:
  static CudaDeviceOptions options() {
    CudaDeviceOptions o;
    o.libraries = false;
    return o;
  }
  static Lowered lower(const Program& program, std::uint64_t seed) {
    Machine machine = testing::random_machine(seed);
    machine.set_alignment(kAlignment);
    Lowering lowering(program, machine);
    const Bytes least = smallest_budget(program, kAlignment).bytes;
    const Strategy strategy = testing::random_strategy(program, lowering.index(), 0.7, seed);
    return *lowering.lower(strategy, {least + least / 4, 0});
  }
};

TEST_F(ExecutorOnCuda, ValuesAreThoseOfTheProgram) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Lowered lowered = lower(program, seed);
    TagRunner meaning(program);
    testing::run_in_order(program, lowered.strategy.algorithms, 6, meaning);
    CudaDevice device(options());
    CudaTagRunner runner(program);
    Executor executor(program, lowered.plan, device, runner);
    executor.enter();
    executor.run(4);
    executor.run(2);
    executor.exit();
    EXPECT_EQ(runner.seen(), meaning.seen());
    EXPECT_EQ(runner.final_values(), meaning.final_values());
  }
}

TEST_F(ExecutorOnCuda, GraphsGiveTheSameValues) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    Program program = testing::random_program(seed);
    // The test's kernels take the iteration as an argument, which a graph cannot change; real ones
    // read the control block.
    for (Op& op : program.ops) {
      if (op.place == OpPlace::device) op.random = false;
    }
    const Lowered lowered = lower(program, seed);
    TagRunner meaning(program);
    testing::run_in_order(program, lowered.strategy.algorithms, 12, meaning);
    CudaDevice device(options());
    CudaTagRunner runner(program);
    Executor executor(program, lowered.plan, device, runner);
    executor.enter();
    executor.run(1);
    const RunReport report = executor.run_graphs(11, 1 + static_cast<std::int64_t>(seed % 4));
    EXPECT_EQ(report.iterations, 11);
    EXPECT_EQ(report.iteration_times.size(), 11U);
    executor.exit();
    EXPECT_EQ(runner.seen(), meaning.seen());
    EXPECT_EQ(runner.final_values(), meaning.final_values());
  }
}

TEST_F(ExecutorOnCuda, AnErrorInTheRunnerEndsInADeviceErrorWithItsMessage) {
  struct Failing : CudaTagRunner {
    Failing(const Program& program, OpPlace place) : CudaTagRunner(program) {
      while (program.ops[static_cast<std::size_t>(failing)].place != place) ++failing;
    }
    OpId failing = 0;
    void launch(const OpCall& call, NativeStream stream) override {
      if (call.op == failing && call.iteration == 1) throw std::runtime_error("unhappy");
      CudaTagRunner::launch(call, stream);
    }
  };
  const Program program = testing::random_program(1);
  const Lowered lowered = lower(program, 1);
  for (const OpPlace place : {OpPlace::device, OpPlace::host}) {
    CudaDevice device(options());
    Failing runner(program, place);
    Executor executor(program, lowered.plan, device, runner);
    executor.enter();
    try {
      executor.run(5);
      FAIL() << "no exception";
    } catch (const DeviceError& error) {
      EXPECT_STREQ(error.what(), "unhappy");
    }
  }
}

TEST_F(ExecutorOnCuda, TimingsAreThoseOfTheKernels) {
  const Program program = testing::random_program(1);
  const Lowered lowered = lower(program, 1);
  CudaDevice device(options());
  CudaTagRunner runner(program);
  Executor executor(program, lowered.plan, device, runner);
  executor.enter();
  executor.run(2);
  EXPECT_TRUE(executor.timings().empty());
  executor.record_timings();
  executor.run(5);
  executor.stop_timings();
  executor.run(1);
  ASSERT_EQ(executor.timings().size(), 5U);
  // Two events far apart are told with a float's precision.
  constexpr Nanos kStep{2000};
  Nanos before{0};
  for (const auto& iteration : executor.timings()) {
    for (std::size_t i = 0; i < iteration.size(); ++i) {
      const Instruction& x = lowered.plan.steady.instructions[i];
      const bool compute =
          lowered.plan.streams[static_cast<std::size_t>(x.stream)].kind == StreamKind::compute;
      if (!compute) {
        EXPECT_EQ(iteration[i].start, Nanos{0});
        continue;
      }
      EXPECT_GE(iteration[i].start, before - kStep);
      EXPECT_GT(iteration[i].end, iteration[i].start);
      before = iteration[i].end;
    }
  }
}

}  // namespace
}  // namespace tidepool
