#include "base/system_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "support/process.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;

/// A /proc and a /sys of its own.
class SystemMemory : public ::testing::Test {
 protected:
  SystemMemory() { write("proc/meminfo", "MemTotal: 9999 kB\nMemAvailable:    1000 kB\n"); }
  void write(const std::string& file, const std::string& content) {
    const std::filesystem::path path = folder_.path() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }
  [[nodiscard]] std::string root() const { return folder_.path().string(); }

  const testing::TemporaryFolder folder_;
};

TEST_F(SystemMemory, WithoutAGroupItIsWhatTheMachineHasLeftLessATenth) {
  EXPECT_FALSE(group_memory_limit(root()));
  EXPECT_EQ(available_memory(root()).bytes, 1024 * 900);
}

TEST_F(SystemMemory, TheSmallestLimitOnTheWayUpCounts) {
  write("proc/self/cgroup", "5:devices:/x\n4:memory:/a/b\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "500000\n");
  write("sys/fs/cgroup/memory/a/memory.max_usage_in_bytes", "1234\n");
  write("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "600000\n");
  const auto limit = group_memory_limit(root());
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->bytes, 500000);
  EXPECT_THAT(limit->from, HasSubstr("cgroup/memory/a"));
  EXPECT_EQ(available_memory(root()).bytes, 500000);
  EXPECT_EQ(group_memory_peak(root()), 1234);
}

/// Regression: `--memory auto` beside another process of the group was ended by the kernel.
TEST_F(SystemMemory, WhatOthersOfTheGroupTakeIsNotThere) {
  write("proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable: 90000000 kB\n");
  write("proc/self/cgroup", "4:memory:/a\n");
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9000000000\n");
  write("sys/fs/cgroup/memory/a/memory.stat", "cache 7000\ntotal_cache 1\ntotal_rss 8000000000\n");
  EXPECT_GE(available_memory(root()).bytes, 1'000'000'000);
  EXPECT_LE(available_memory(root()).bytes, 2'000'000'000) << "this process is no other";
  EXPECT_EQ(group_memory_limit(root())->bytes, 9'000'000'000);
  write("sys/fs/cgroup/memory/a/memory.stat", "total_rss 1000\n");
  EXPECT_EQ(available_memory(root()).bytes, 9'000'000'000);
  write("proc/self/cgroup", "0::/b\n");
  write("sys/fs/cgroup/b/memory.max", "9000000000\n");
  write("sys/fs/cgroup/b/memory.stat", "anon 8000000000\nfile 3\n");
  EXPECT_LE(available_memory(root()).bytes, 2'000'000'000);
}

TEST_F(SystemMemory, NoLimitIsNone) {
  write("proc/self/cgroup", "4:memory:/a\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(group_memory_limit(root()));
  EXPECT_FALSE(group_memory_peak(root()));
}

TEST_F(SystemMemory, TheSecondVersionHasOtherNames) {
  write("proc/self/cgroup", "0::/user.slice/run\n");
  write("sys/fs/cgroup/user.slice/memory.max", "700000\n");
  write("sys/fs/cgroup/user.slice/run/memory.max", "max\n");
  write("sys/fs/cgroup/user.slice/memory.peak", "77\n");
  const auto limit = group_memory_limit(root());
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->bytes, 700000);
  EXPECT_EQ(group_memory_peak(root()), 77);
}

TEST_F(SystemMemory, InAContainerTheGroupIsTheMount) {
  write("proc/self/cgroup", "4:memory:/docker/0123\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "400000\n");
  ASSERT_TRUE(group_memory_limit(root()));
  EXPECT_EQ(group_memory_limit(root())->bytes, 400000);
}

TEST_F(SystemMemory, AGroupAboveWhatIsLeftDoesNotRaiseIt) {
  write("proc/self/cgroup", "4:memory:/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "5000000\n");
  EXPECT_EQ(available_memory(root()).bytes, 1024 * 900);
}

TEST(ResidentMemory, GrowsWithWhatIsTouchedAndItsPeakStays) {
  constexpr std::size_t kBytes = 32U << 20U;
  const Bytes before = resident_memory().anonymous;
  void* const memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 1, kBytes);
  EXPECT_GE(resident_memory().anonymous, before + Bytes{kBytes} - kMiB);
  ::munmap(memory, kBytes);
  trim_heap();
  EXPECT_LT(resident_memory().anonymous, before + Bytes{kBytes} / 2);
  EXPECT_GE(highest_resident_memory(), Bytes{kBytes});
  EXPECT_GT(resident_memory().files, 0);
}

}  // namespace
}  // namespace tidepool
