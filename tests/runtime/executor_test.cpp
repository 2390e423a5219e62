#include "runtime/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "lower/lower.h"
#include "runtime/profiler.h"
#include "support/fake_device.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "support/tag_runner.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;
using testing::TagRunner;

/// Remembers who was called in which iteration; may fail at one call.
class Recorder : public TagRunner {
 public:
  explicit Recorder(const Program& program) : TagRunner(program) {}

  void launch(const OpCall& call, NativeStream stream) override {
    if (call.op == fail_op && call.iteration == fail_iteration) {
      throw std::runtime_error("the kernel is unhappy");
    }
    iterations[call.op].push_back(call.iteration);
    TagRunner::launch(call, stream);
  }
  void load(TensorId tensor, std::byte* to) override {
    loads.push_back(tensor);
    TagRunner::load(tensor, to);
  }
  void store(TensorId tensor, const std::byte* from) override {
    stores.push_back(tensor);
    TagRunner::store(tensor, from);
  }

  OpId fail_op = kNone;
  std::int64_t fail_iteration = 0;
  std::map<OpId, std::vector<std::int64_t>> iterations;
  std::vector<TensorId> loads;
  std::vector<TensorId> stores;
};

class ExecutorTest : public ::testing::Test {
 protected:
  static constexpr OpId kFeed = 0;
  static constexpr OpId kHead = 2;

  ExecutorTest() {
    script_.op_time = [](const WorkLabel&) { return Nanos{100}; };
    script_.copy_time = [](CopyRoute, Bytes bytes) { return Nanos{bytes}; };
    Lowering lowering(program_, testing::byte_a_nanosecond(64));
    Strategy strategy =
        keep_everything(program_, lowering.index(), least_workspace_algorithms(program_));
    strategy.gaps[static_cast<std::size_t>(lowering.index().first_gap(1))] = Decision::swap;
    plan_ = lowering.lower(strategy, {1 << 20, 0})->plan;
  }

  Program program_ = testing::tiny_training();
  Plan plan_;
  FakeScript script_;
  Recorder runner_{program_};
};

TEST_F(ExecutorTest, IterationsAreNumberedOnOverSeveralCalls) {
  FakeDevice device(script_);
  Executor executor(program_, plan_, device, runner_);
  executor.enter();
  EXPECT_EQ(executor.run(3).iterations, 3);
  EXPECT_EQ(executor.run(0).iterations, 0);
  EXPECT_EQ(executor.run(2).iterations, 2);
  for (OpId op = 0; op < static_cast<OpId>(program_.ops.size()); ++op) {
    EXPECT_THAT(runner_.iterations[op], ElementsAre(0, 1, 2, 3, 4)) << op;
  }
}

TEST_F(ExecutorTest, AResumedTrainingStartsAtItsOwnNumber) {
  FakeDevice device(script_);
  Executor executor(program_, plan_, device, runner_);
  executor.set_next_iteration(41);
  executor.enter();
  executor.run(2);
  EXPECT_THAT(runner_.iterations[kFeed], ElementsAre(41, 42));
}

TEST_F(ExecutorTest, SeveralCallsComputeWhatOneCallDoes) {
  TagRunner meaning(program_);
  testing::run_in_order(program_, least_workspace_algorithms(program_), 5, meaning);
  for (const std::vector<int>& blocks : {std::vector<int>{5}, {1, 4}, {2, 2, 1}, {1, 1, 1, 1, 1}}) {
    FakeDevice device(script_);
    Recorder runner(program_);
    Executor executor(program_, plan_, device, runner);
    executor.enter();
    for (const int block : blocks) executor.run(block);
    executor.exit();
    EXPECT_EQ(runner.seen(), meaning.seen());
    EXPECT_EQ(runner.final_values(), meaning.final_values());
    EXPECT_THAT(device.races(), ::testing::IsEmpty());
  }
}

TEST_F(ExecutorTest, EntryLoadsAndExitStoresEachPersistentTensorOnce) {
  FakeDevice device(script_);
  Executor executor(program_, plan_, device, runner_);
  EXPECT_THAT(runner_.loads, ElementsAre());
  executor.enter();
  EXPECT_THAT(runner_.loads, ElementsAre(1));
  executor.run(2);
  EXPECT_THAT(runner_.stores, ElementsAre());
  executor.exit();
  EXPECT_THAT(runner_.loads, ElementsAre(1));
  EXPECT_THAT(runner_.stores, ElementsAre(1));
}

TEST_F(ExecutorTest, CancellingStopsBeforeTheNextIterationAndLeavesWholeOnes) {
  FakeDevice device(script_);
  Executor executor(program_, plan_, device, runner_);
  executor.enter();
  int asked = 0;
  const RunReport report = executor.run(100, [&] { return asked++ == 3; });
  EXPECT_TRUE(report.cancelled);
  EXPECT_EQ(report.iterations, 3);
  EXPECT_EQ(report.iteration_times.size(), 3u);
  for (const auto& [op, iterations] : runner_.iterations) EXPECT_EQ(iterations.size(), 3u) << op;
  EXPECT_FALSE(executor.run(1).cancelled);
  EXPECT_THAT(runner_.iterations[kHead], ElementsAre(0, 1, 2, 3));
}

TEST_F(ExecutorTest, CancelledAtOnceNothingRuns) {
  FakeDevice device(script_);
  Executor executor(program_, plan_, device, runner_);
  executor.enter();
  const RunReport report = executor.run(5, [] { return true; });
  EXPECT_TRUE(report.cancelled);
  EXPECT_EQ(report.iterations, 0);
  EXPECT_TRUE(runner_.iterations.empty());
}

TEST_F(ExecutorTest, OnIterationIsToldEveryNumberAndTimeInOrder) {
  FakeDevice device(script_);
  Executor executor(program_, plan_, device, runner_);
  executor.enter();
  executor.run(2);
  std::vector<std::int64_t> numbers;
  std::vector<Nanos> times;
  const RunReport report = executor.run(4, {}, [&](std::int64_t i, Nanos t) {
    numbers.push_back(i);
    times.push_back(t);
  });
  EXPECT_THAT(numbers, ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(times, report.iteration_times);
}

TEST_F(ExecutorTest, IterationTimesAddUpToTheVirtualClock) {
  FakeDevice device(script_);
  Executor executor(program_, plan_, device, runner_);
  executor.enter();
  const Nanos start = device.now();
  const RunReport report = executor.run(6);
  Nanos sum{0};
  for (const Nanos t : report.iteration_times) {
    EXPECT_GE(t, Nanos{400}) << "four device ops of 100 ns";
    sum += t;
  }
  EXPECT_LE(start + sum, device.now());
}

TEST_F(ExecutorTest, ArenaPeakIsTheHighestByteTouchedAndInsideTheArena) {
  FakeDevice device(script_);
  Executor executor(program_, plan_, device, runner_);
  EXPECT_EQ(executor.arena_peak(), 0);
  executor.enter();
  executor.run(1);
  EXPECT_EQ(executor.arena_peak(), plan_.device_bytes());
}

TEST_F(ExecutorTest, ArenaPeakCountsWorkspaces) {
  Plan plan = plan_;
  for (Instruction& x : plan.steady.instructions) {
    if (x.workspace_bytes == 0) continue;
    x.workspace_offset = plan.device_bytes();
    plan.device_bytes() += x.workspace_bytes;
  }
  FakeDevice device(script_);
  Executor executor(program_, plan, device, runner_);
  executor.enter();
  executor.run(1);
  EXPECT_EQ(executor.arena_peak(), plan.device_bytes());
}

TEST_F(ExecutorTest, AnErrorInTheRunnerSurfacesAndTheExecutorCanStillBeDestroyed) {
  runner_.fail_op = kHead;
  runner_.fail_iteration = 1;
  FakeDevice device(script_);
  {
    Executor executor(program_, plan_, device, runner_);
    executor.enter();
    try {
      executor.run(3);
      FAIL() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "the kernel is unhappy");
    }
  }
  EXPECT_THAT(runner_.iterations[kHead], ElementsAre(0));
}

TEST_F(ExecutorTest, AFailingCopySurfacesAsADeviceError) {
  for (std::int64_t copy = 0; copy < 12; ++copy) {
    FakeScript script = script_;
    script.faults.fail_copy = {copy, {}};
    FakeDevice device(script);
    Recorder runner(program_);
    Executor executor(program_, plan_, device, runner);
    EXPECT_THROW(
        {
          executor.enter();
          executor.run(3);
          executor.exit();
        },
        DeviceError)
        << copy;
  }
}

TEST_F(ExecutorTest, PointersAreWherePlacementsSayAndWorkspacesOnlyWhereNeeded) {
  struct Pointers : OpRunner {
    const Program* program = nullptr;
    const Plan* plan = nullptr;
    FakeDevice* device = nullptr;
    int calls = 0;
    void launch(const OpCall& call, NativeStream) override {
      ++calls;
      const Op& op = program->ops[static_cast<std::size_t>(call.op)];
      ASSERT_EQ(call.pointers.size(), op.accesses.size());
      const bool host = op.place == OpPlace::host;
      std::byte* base = host ? device->host_arena() : device->arena();
      for (std::byte* pointer : call.pointers) {
        EXPECT_GE(pointer, base);
        EXPECT_LT(pointer, base + (host ? plan->host_bytes() : plan->device_bytes()));
      }
      EXPECT_EQ(call.workspace != nullptr, call.op == kHead);
    }
    void load(TensorId, std::byte*) override {}
    void store(TensorId, const std::byte*) override {}
  };
  FakeDevice device(script_);
  Pointers runner;
  runner.program = &program_;
  runner.plan = &plan_;
  runner.device = &device;
  Executor executor(program_, plan_, device, runner);
  executor.enter();
  executor.run(2);
  EXPECT_EQ(runner.calls, 12);
}

TEST(ApplyTimings, TakesTheMedianFromTheEndOfTheOpBefore) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 64);
  b.device("A", {{x, write}}, Nanos{0});
  b.device("B", {{x, read}}, Nanos{0});
  Program program = b.build();
  Lowering lowering(program, testing::byte_a_nanosecond(64));
  const auto lowered =
      lowering.lower(keep_everything(program, lowering.index(), {0, 0}), {1 << 20, 0});
  ASSERT_TRUE(lowered);
  ASSERT_EQ(lowered->plan.steady.instructions.size(), 2u);
  const auto timing = [](int start, int end) { return OpTiming{Nanos{start}, Nanos{end}}; };
  // A: 100, 300, 105, whose median is taken. B from the end of A: 50, 70, 1000: most of them were
  // interrupted.
  const double spread = apply_timings(lowered->plan,
                                      {{timing(0, 100), timing(120, 150)},
                                       {timing(0, 300), timing(300, 370)},
                                       {timing(0, 105), timing(1055, 1105)}},
                                      program);
  EXPECT_EQ(program.ops[0].algorithms[0].time, Nanos{105});
  EXPECT_EQ(program.ops[1].algorithms[0].time, Nanos{55});
  EXPECT_DOUBLE_EQ(spread, 175.0 / 150 - 1);
}

TEST(ApplyTimings, WithoutTimingsChangesNothing) {
  Program program = testing::tiny_training();
  Lowering lowering(program, testing::byte_a_nanosecond(64));
  const auto lowered = lowering.lower(
      keep_everything(program, lowering.index(), least_workspace_algorithms(program)),
      {1 << 20, 0});
  apply_timings(lowered->plan, {}, program);
  EXPECT_EQ(program.ops[1].algorithms[0].time, Nanos{1000});
}

}  // namespace
}  // namespace tidepool
