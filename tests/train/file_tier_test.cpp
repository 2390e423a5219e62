// Trainings over three tiers: a device, so much of its host and a file behind that. Bits are those
// of training without limits, and each tier stays inside its own.
#include <fmt/format.h>

#include "support/disks.h"
#include "train/training_fixture.h"
#include "train/training_spec.h"

namespace tidepool {
namespace {

using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Le;

class FileTierTest : public testing::TimedTrainingTest {
 protected:
  /// In half of the device bytes that it would take, and so many of the host's.
  [[nodiscard]] TrainingSpec in_three_tiers(Bytes host) const {
    TrainingSpec spec = tiny(50);
    spec.job.sub_batch = spec.job.batch;
    spec.job.algorithms = AlgorithmPolicy::least_workspace;
    spec.job.device.link = 4'000'000'000;
    spec.job.device.file_tier.folder = disk_.path();
    spec.job.device.file_tier.write_speed = spec.job.device.file_tier.read_speed = 4e9;
    spec.job.device.file_tier.limit = kFileLimit;
    spec.job.device.file_tier.verify = true;
    spec.budget.host = host;
    spec.planner.name = "autoswap";
    spec.planner.time_limit = std::chrono::milliseconds(200);
    return spec;
  }
  /// What the same training takes of the host where that has no limit.
  Bytes host_without_limit(const TrainingSpec& in) {
    TrainingSpec spec = in;
    spec.job.device.file_tier.folder.clear();
    spec.budget.host = 0;
    const auto report = run_training(spec, listener_);
    EXPECT_TRUE(report) << report.error().message;
    return report ? report->start.running().host_bytes() : 0;
  }
  std::uint32_t state_without_limits(const TrainingSpec& in) {
    TrainingSpec spec = in;
    spec.job.device.file_tier.folder.clear();
    spec.budget = {};
    const auto report = run_training(spec, listener_);
    EXPECT_TRUE(report) << report.error().message;
    return report ? report->state_crc32 : 0;
  }

  static constexpr Bytes kFileLimit = 64 * kMiB;
  testing::DiskFolder disk_;
};

TEST_F(FileTierTest, EveryTierIsUsedAndStaysInsideAndBitsAreThoseWithoutLimits) {
  const TrainingSpec like = in_three_tiers(0);
  const Bytes host = host_without_limit(like) / 2;
  const std::uint32_t state = state_without_limits(like);
  for (const char* planner : {"autoswap", "tide", "auto", "vdnn-all"}) {
    SCOPED_TRACE(planner);
    TrainingSpec spec = in_three_tiers(host);
    spec.planner.name = planner;
    testing::forget_opened();
    const auto report = run_training(spec, listener_);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->state_crc32, state);
    EXPECT_THAT(testing::opened_devices(),
                Each(Field(&testing::OpenedArenas::device, Le(report->start.budget.device))));
    EXPECT_THAT(testing::opened_devices(), Each(Field(&testing::OpenedArenas::host, Le(host))));
    EXPECT_THAT(testing::opened_devices(),
                Each(Field(&testing::OpenedArenas::file, Le(kFileLimit))));
    ASSERT_TRUE(report->file);
    if (planner == std::string("auto")) continue;  // it may make again what finds no room
    EXPECT_GT(report->totals.swapped_out, host) << "more leaves the device than the host holds";
    EXPECT_GT(report->file->traffic.written.bytes, 0);
    EXPECT_GT(report->file->traffic.read.bytes, 0);
    EXPECT_EQ(report->file->traffic.size, report->start.running().arenas.back().bytes);
  }
}

TEST_F(FileTierTest, AComparisonFindsTheSameBits) {
  TrainingSpec spec = in_three_tiers(0);
  spec.budget.host = host_without_limit(spec) / 2;
  spec.comparison = Comparison::bits;
  const auto report = run_training(spec, listener_);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_TRUE(report->baseline);
  EXPECT_EQ(report->baseline->identical, true);
  EXPECT_GT(report->file->traffic.read.bytes, 0);
}

TEST_F(FileTierTest, WhereTheHostIsEnoughNothingGoesToTheFile) {
  TrainingSpec spec = in_three_tiers(0);
  spec.budget.host = 2 * host_without_limit(spec) + kMiB;
  const auto report = run_training(spec, listener_);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->start.running().arenas.back().bytes, 0);
  ASSERT_TRUE(report->file);
  EXPECT_EQ(report->file->traffic.size, 0);
  EXPECT_EQ(report->state_crc32, state_without_limits(spec));
}

/// Of ten iterations: the evaluation has a plan of its own, of two tiers.
TEST_F(FileTierTest, EpochsEvaluateAndGoOnFromCheckpointsBitForBit) {
  TrainingSpec spec = in_three_tiers(0);
  spec.job.batch = spec.job.sub_batch = 1000;
  spec.budget.host = host_without_limit(spec) / 2;
  spec.epochs = 2;
  spec.evaluate = true;
  const auto whole = run_training(spec, listener_);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_TRUE(whole->epochs.back().test);
  EXPECT_EQ(whole->file->iterations, 20);
  EXPECT_GT(whole->file->traffic.read.bytes, 0);
  spec.epochs = 1;
  spec.checkpoint = folder_.file("c.ckpt");
  ASSERT_TRUE(run_training(spec, listener_));
  spec.epochs = 2;
  spec.resume = spec.checkpoint;
  const auto resumed = run_training(spec, listener_);
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(resumed->state_crc32, whole->state_crc32);
}

TEST_F(FileTierTest, TheSmallestHostBudgetThatIsNamedTrains) {
  TrainingSpec spec = in_three_tiers(8192);
  const auto refused = run_training(spec, listener_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::infeasible);
  EXPECT_TRUE(refused.error().of_host);
  EXPECT_THAT(refused.error().message, HasSubstr("even with a file behind it"));
  ASSERT_TRUE(refused.error().smallest_feasible);
  spec.budget.host = *refused.error().smallest_feasible;
  const auto report = run_training(spec, listener_);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_LE(report->start.running().host_bytes(), spec.budget.host);
  EXPECT_EQ(report->state_crc32, state_without_limits(spec));
}

TEST_F(FileTierTest, WhatDoesNotGoTogetherIsRefused) {
  const auto refusal = [&](const TrainingSpec& of) {
    const auto report = run_training(of, listener_);
    if (report) return std::string("accepted");
    EXPECT_EQ(report.error().code, ErrorCode::usage);
    return report.error().message;
  };
  TrainingSpec spec = in_three_tiers(0);
  EXPECT_THAT(refusal(spec), HasSubstr("`host_budget`"));
  spec.budget.host = kMiB;
  spec.job.devices = 2;
  EXPECT_THAT(refusal(spec), HasSubstr("works with one device"));
  spec.job.devices = 1;
  spec.job.device.spill.folder = disk_.path();
  EXPECT_THAT(refusal(spec), HasSubstr("exclude each other"));
  spec.job.device.spill.folder.clear();
  spec.job.device.file_tier.folder = disk_.path() + "/none";
  EXPECT_THAT(refusal(spec), HasSubstr("`file_folder`"));
  EXPECT_THAT(testing::opened_devices(), ::testing::IsEmpty());
}

/// The disk is so much slower than it is said to be that copies hide behind no op, on no machine.
TEST_F(FileTierTest, AnotherPlanIsMadeForTheDiskAsItIs) {
  TrainingSpec spec = in_three_tiers(0);
  spec.job.batch = spec.job.sub_batch = 1000;
  spec.budget.host = host_without_limit(spec) / 2;
  spec.job.device.file_tier.write_speed = spec.job.device.file_tier.read_speed = 1e9;
  spec.epochs = 2;
  testing::say_disk_speed(1e5);
  const auto report = run_training(spec, listener_);
  testing::say_disk_speed(0);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_FALSE(report->file->drifts.empty());
  EXPECT_GE(report->file->drifts.front().iteration, 5);
  EXPECT_TRUE(report->file->drifts.front().planned_again);
}

}  // namespace
}  // namespace tidepool
