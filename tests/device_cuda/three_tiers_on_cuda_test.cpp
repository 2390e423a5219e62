// Plans over a GPU, its pinned host memory and a file behind it: the values are those of the
// program, also in graphs, and what fails in the file ends the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "device/cuda/cuda_device.h"
#include "device_cuda/cuda_tag_runner.h"
#include "runtime/executor.h"
#include "schedule/plan_totals.h"
#include "support/cuda.h"
#include "support/disks.h"
#include "support/three_tiers.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::CudaTagRunner;
using ::testing::HasSubstr;
using testing::SpacedPlan;
using testing::TagRunner;

class ThreeTiersOnCuda : public testing::CudaTest {
 protected:
  /// Those of `count` random plans that use the file.
  static std::vector<SpacedPlan> plans(std::uint64_t count) {
    testing::RandomShape shape;
    shape.most_layers = 5;
    shape.most_words = 512;
    shape.alignment = 512;
    shape.block = SpillOptions::kAlignment;
    std::vector<SpacedPlan> found;
    for (std::uint64_t seed = 0; seed < count; ++seed) {
      auto drawn = testing::random_three_tiers(seed, shape);
      if (drawn && drawn->whole.plan.arenas.back().bytes > 0) {
        found.push_back(std::move(drawn->whole));
      }
    }
    EXPECT_GT(found.size(), count / 3);
    return found;
  }

  [[nodiscard]] CudaDeviceOptions options() const {
    CudaDeviceOptions o;
    o.libraries = false;
    o.spill.emplace().folder = folder_.path();
    o.spill->verify = true;
    return o;
  }

 private:
  testing::DiskFolder folder_;
};

TEST_F(ThreeTiersOnCuda, ValuesAreThoseOfTheProgramAndTrafficIsThePlans) {
  for (const SpacedPlan& p : plans(12)) {
    SCOPED_TRACE(p.program.name);
    constexpr std::int64_t kRuns = 6;
    TagRunner meaning(p.program);
    testing::run_in_order(p.program, chosen_algorithms(p.program, p.plan), kRuns, meaning);
    CudaDevice device(options());
    CudaTagRunner runner(p.program);
    Executor executor(p.program, p.plan, device, runner);
    executor.enter();
    const FileTraffic before = device.file_traffic();
    executor.run(4);
    executor.run(2);
    const FileTraffic after = device.file_traffic();
    executor.exit();
    EXPECT_EQ(runner.seen(), meaning.seen());
    EXPECT_EQ(runner.final_values(), meaning.final_values());
    std::int64_t written = 0, read = 0;
    for (const Instruction& x : p.plan.steady.instructions) {
      if (x.kind != InstructionKind::copy) continue;
      written += p.plan.kind_of(x.to) == SpaceKind::file ? 1 : 0;
      read += p.plan.kind_of(x.from) == SpaceKind::file ? 1 : 0;
    }
    EXPECT_EQ(after.written.copies - before.written.copies, kRuns * written);
    EXPECT_EQ(after.read.copies - before.read.copies, kRuns * read);
    EXPECT_EQ(after.size, p.plan.arenas.back().bytes);
  }
}

TEST_F(ThreeTiersOnCuda, GraphsGiveTheSameValues) {
  for (SpacedPlan& p : plans(6)) {
    SCOPED_TRACE(p.program.name);
    // As in ExecutorOnCuda: the test's kernels take the iteration as an argument.
    for (Op& op : p.program.ops) {
      if (op.place == OpPlace::device) op.random = false;
    }
    TagRunner meaning(p.program);
    testing::run_in_order(p.program, chosen_algorithms(p.program, p.plan), 8, meaning);
    CudaDevice device(options());
    CudaTagRunner runner(p.program);
    Executor executor(p.program, p.plan, device, runner);
    executor.enter();
    executor.run(1);
    EXPECT_EQ(executor.run_graphs(7, 2).iterations, 7);
    executor.exit();
    EXPECT_EQ(runner.seen(), meaning.seen());
    EXPECT_EQ(runner.final_values(), meaning.final_values());
  }
}

TEST_F(ThreeTiersOnCuda, AFailedTransferEndsTheRunAndNamesFileAndTensor) {
  const SpacedPlan p = plans(4).front();
  for (const bool write : {true, false}) {
    CudaDeviceOptions failing = options();
    failing.faults.fail_transfer = {{0, 9, EIO, write}};
    CudaDevice device(failing);
    CudaTagRunner runner(p.program);
    Executor executor(p.program, p.plan, device, runner);
    try {
      executor.enter();
      executor.run(4);
      executor.exit();
      FAIL() << "no exception";
    } catch (const DeviceError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr(write ? "write" : "read"), HasSubstr("offset"),
                                      HasSubstr("Input/output error")));
    }
  }
}

TEST_F(ThreeTiersOnCuda, WithoutAFolderThereIsNoFile) {
  const SpacedPlan p = plans(4).front();
  CudaDeviceOptions none = options();
  none.spill.reset();
  CudaDevice device(none);
  CudaTagRunner runner(p.program);
  EXPECT_THROW(Executor(p.program, p.plan, device, runner), DeviceError);
}

TEST_F(ThreeTiersOnCuda, AGpuAndTheFileMeetInTheHostOnly) {
  CudaDevice device(options());
  DeviceConfig config{4096, 4096, {StreamKind::compute, StreamKind::copy}};
  config.arenas.push_back({SpaceKind::file, 4096});
  device.open(config);
  EXPECT_EQ(device.arena(2), nullptr);
  EXPECT_THROW(device.copy(1, {2, 0}, {0, 0}, 64), DeviceError);
  EXPECT_THROW(device.copy(1, {0, 0}, {2, 0}, 64), DeviceError);
  device.copy(1, {2, 0}, {1, 0}, 64);
  device.copy(1, {1, 0}, {2, 0}, 64);
  device.synchronize();
  EXPECT_EQ(device.file_traffic().read.copies, 1);
}

}  // namespace
}  // namespace tidepool
