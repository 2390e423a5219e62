// Plans on a GPU, beside what they promise on every device: in graphs, and how long kernels took.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device_cuda/cuda_subject.h"
#include "runtime/executor.h"
#include "support/random_plan.h"

namespace tidepool {
namespace {

using testing::cuda_options;
using testing::CudaTagRunner;
using testing::TagRunner;

class ExecutorOnCuda : public testing::CudaTest {};

TEST_F(ExecutorOnCuda, GraphsGiveTheSameValues) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    Program program = testing::random_program(seed);
    // The test's kernels take the iteration as an argument, which a graph cannot change; real ones
    // read the control block.
    for (Op& op : program.ops) {
      if (op.place == OpPlace::device) op.random = false;
    }
    CudaDevice device(cuda_options());
    const Lowered lowered = testing::lower_at_random(program, seed, device.alignment());
    TagRunner meaning(program);
    testing::run_in_order(program, lowered.strategy.algorithms, 12, meaning);
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

TEST_F(ExecutorOnCuda, TimingsAreThoseOfTheKernels) {
  const Program program = testing::random_program(1);
  CudaDevice device(cuda_options());
  const Lowered lowered = testing::lower_at_random(program, 1, device.alignment());
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
        EXPECT_EQ(iteration[i].end > Nanos{0}, x.kind == InstructionKind::copy);
        EXPECT_GE(iteration[i].end, iteration[i].start);
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
