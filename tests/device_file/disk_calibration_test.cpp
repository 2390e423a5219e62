// What is measured depends on the machine; decisions and limits do not.
#include "device/file/disk_calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "support/disks.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;

TEST(DiskCalibration, ADiskThatTakesTurnsIsNotDuplex) {
  // Measured on a virtual disk: 4.5 and 2.8 GB/s alone, 1.6 to 1.8 each together.
  EXPECT_FALSE(is_duplex(4.5e9, 2.8e9, {1'730'000'000, 1'730'000'000, 1}));
  EXPECT_FALSE(is_duplex(1e9, 1e9, {500'000'000, 500'000'000, 1}));
  EXPECT_FALSE(is_duplex(1e9, 1e9, {900'000'000, 200'000'000, 1})) << "unequal turns";
}

TEST(DiskCalibration, ADiskThatServesBothAtOnceIs) {
  EXPECT_TRUE(is_duplex(4.5e9, 2.8e9, {4'500'000'000, 2'800'000'000, 1}));
  EXPECT_TRUE(is_duplex(4.5e9, 2.8e9, {4'000'000'000, 2'400'000'000, 1})) << "a little slower";
  EXPECT_TRUE(is_duplex(1e9, 1e9, {1'000'000'000, 800'000'000, 1}));
}

TEST(DiskCalibration, MoreTransfersAtATimeOnlyWhereTheyAreClearlyFaster) {
  EXPECT_EQ(best_depth(std::array{2.0, 2.1, 2.15, 2.0}), 1);
  EXPECT_EQ(best_depth(std::array{1.0, 1.9, 2.0, 2.0}), 2);
  EXPECT_EQ(best_depth(std::array{1.0, 1.9, 3.0, 3.5}), 8);
  EXPECT_EQ(best_depth(std::array{1.0}), 1);
}

class DiskCalibrationOfFolder : public ::testing::Test {
 protected:
  [[nodiscard]] SpillOptions options() const {
    SpillOptions o;
    o.folder = folder_.path();
    return o;
  }
  testing::DiskFolder folder_;
};

TEST_F(DiskCalibrationOfFolder, MeasuresWhateverMemoryThereIsAndLeavesNothing) {
  for (const Bytes memory : {kMiB, 64 * kMiB}) {
    const auto speeds = calibrate(options(), memory);
    ASSERT_TRUE(speeds) << speeds.error().message;
    EXPECT_GT(speeds->write, 0);
    EXPECT_GT(speeds->read, 0);
    EXPECT_GE(speeds->write_latency, Nanos{0}) << "a disk that is busy may have none";
    EXPECT_GE(speeds->read_latency, Nanos{0});
    EXPECT_GE(speeds->depth, 1);
    EXPECT_LE(speeds->depth, SpillOptions::kMostDepth);
    EXPECT_GT(speeds->room, 0);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(DiskCalibrationOfFolder, StatedSpeedsAreTakenAsTheyAre) {
  SpillOptions o = options();
  o.write_speed = 500e6;
  o.read_speed = 250e6;
  o.paced_duplex = true;
  o.depth = 3;
  o.limit = 7 * kMiB;
  const auto speeds = calibrate(o, 0);
  ASSERT_TRUE(speeds);
  EXPECT_EQ(speeds->write, 500e6);
  EXPECT_EQ(speeds->read, 250e6);
  EXPECT_EQ(speeds->write_latency, Nanos{0});
  EXPECT_TRUE(speeds->duplex);
  EXPECT_EQ(speeds->depth, 3);
  EXPECT_EQ(speeds->room, 7 * kMiB);
}

TEST_F(DiskCalibrationOfFolder, AFolderInMemoryHasNoSpeed) {
  if (!std::filesystem::exists("/dev/shm")) GTEST_SKIP() << "no /dev/shm here";
  SpillOptions o;
  o.folder = "/dev/shm";
  const auto speeds = calibrate(o, kMiB);
  ASSERT_FALSE(speeds);
  EXPECT_EQ(speeds.error().code, ErrorCode::usage);
  EXPECT_THAT(speeds.error().message, HasSubstr("is in memory"));
}

TEST_F(DiskCalibrationOfFolder, ASmallDiskIsMeasuredWithWhatItMayTake) {
  const testing::SmallDisk disk("mkfs.ext4", 16 * kMiB);
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  SpillOptions small;
  small.folder = disk.path();
  small.limit = 2 * kMiB;
  const auto speeds = calibrate(small, kMiB);
  ASSERT_TRUE(speeds) << speeds.error().message;
  EXPECT_GT(speeds->write, 0);
  EXPECT_EQ(speeds->room, 2 * kMiB);
  small.limit = 64 * kKiB;
  EXPECT_EQ(calibrate(small, kMiB).error().code, ErrorCode::infeasible) << "less than it takes";
}

}  // namespace
}  // namespace tidepool
