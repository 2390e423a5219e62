#include "device/file/block_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/error_number.h"
#include "base/random.h"
#include "device/file/file_system.h"
#include "support/disks.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::DiskFolder;
using testing::free_on;
using ::testing::HasSubstr;
using testing::SmallDisk;

constexpr Bytes kBlock = BlockFile::kAlignment;

/// Memory at a multiple of a block.
class Buffer {
 public:
  explicit Buffer(Bytes bytes)
      : bytes_(static_cast<std::size_t>(bytes)),
        data_(static_cast<std::byte*>(std::aligned_alloc(kBlock, bytes_)), &std::free) {
    std::memset(data_.get(), 0, bytes_);
  }
  void fill(std::uint64_t seed) {
    Random random(seed);
    for (std::size_t i = 0; i < bytes_; i += 8) {
      const std::uint64_t word = random();
      std::memcpy(data_.get() + i, &word, 8);
    }
  }
  [[nodiscard]] std::byte* data() const { return data_.get(); }
  friend bool operator==(const Buffer& a, const Buffer& b) {
    return a.bytes_ == b.bytes_ && std::memcmp(a.data(), b.data(), a.bytes_) == 0;
  }

 private:
  std::size_t bytes_;
  std::unique_ptr<std::byte, decltype(&std::free)> data_;
};

class BlockFileTest : public ::testing::Test {
 protected:
  void SetUp() override { ::alarm(120); }
  void TearDown() override { ::alarm(0); }

  [[nodiscard]] SpillOptions options() const {
    SpillOptions o;
    o.folder = folder_.path();
    return o;
  }
  BlockFile open(Bytes bytes, const FaultPlan& faults = {}) {
    auto file = BlockFile::open(options(), bytes, faults);
    if (!file) throw std::runtime_error(file.error().message);
    return std::move(*file);
  }
  static std::string error_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const DeviceError& error) {
      return error.what();
    }
    return "no error";
  }

  DiskFolder folder_;
};

TEST_F(BlockFileTest, WhatIsReadIsWhatWasWrittenThere) {
  constexpr Bytes kBytes = 2 * BlockFile::kPiece + 3 * kBlock;
  for (const int depth : {1, 3, SpillOptions::kMostDepth}) {
    SCOPED_TRACE(depth);
    BlockFile file = open(2 * kBytes + kBlock - 1);
    EXPECT_EQ(file.size(), 2 * kBytes + kBlock) << "whole blocks";
    file.set_depth(depth);
    Buffer a(kBytes), b(kBytes), seen(kBytes);
    a.fill(1);
    b.fill(2);
    file.write(kBytes, a.data(), kBytes);
    file.write(0, b.data(), kBytes);
    file.read(kBytes, seen.data(), kBytes);
    EXPECT_EQ(seen, a);
    file.read(0, seen.data(), kBytes);
    EXPECT_EQ(seen, b);
  }
}

TEST_F(BlockFileTest, CopiesOfBothDirectionsAtOnceDoNotMix) {
  constexpr Bytes kBytes = 12 * kMiB;
  BlockFile file = open(3 * kBytes);
  file.set_depth(3);
  Buffer a(kBytes), b(kBytes), c(kBytes), seen(kBytes);
  a.fill(1);
  b.fill(2);
  c.fill(3);
  file.write(0, a.data(), kBytes);
  std::thread first([&] { file.write(kBytes, b.data(), kBytes); });
  std::thread second([&] { file.write(2 * kBytes, c.data(), kBytes); });
  file.read(0, seen.data(), kBytes);
  first.join();
  second.join();
  EXPECT_EQ(seen, a);
  file.read(kBytes, seen.data(), kBytes);
  EXPECT_EQ(seen, b);
  file.read(2 * kBytes, seen.data(), kBytes);
  EXPECT_EQ(seen, c);
}

TEST_F(BlockFileTest, ItHasNoNameAndLeavesNothingInThePageCache) {
  BlockFile file = open(8 * kMiB);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  Buffer data(8 * kMiB);
  file.write(0, data.data(), 8 * kMiB);
  file.read(0, data.data(), 8 * kMiB);
  ASSERT_TRUE(file.cached());
  if (!file.direct()) GTEST_SKIP() << file.warning();
  EXPECT_EQ(*file.cached(), 0);
  EXPECT_THAT(file.kind(), HasSubstr("direct"));
  EXPECT_EQ(file.warning(), "");
  // The same file through the page cache: what is counted is there.
  const int fd = file.descriptor();
  ASSERT_EQ(::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_DIRECT), 0);
  file.read(0, data.data(), 8 * kMiB);
  EXPECT_GT(*file.cached(), 0);
}

TEST_F(BlockFileTest, AFolderInMemoryIsRefused) {
  if (!std::filesystem::exists("/dev/shm")) GTEST_SKIP() << "no /dev/shm here";
  SpillOptions o;
  o.folder = "/dev/shm";
  const auto file = BlockFile::open(o, kMiB);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::usage);
  EXPECT_THAT(file.error().message, HasSubstr("/dev/shm is in memory (tmpfs)"));
  EXPECT_FALSE(BlockFile::room(o));
}

TEST_F(BlockFileTest, AFolderThatIsNoneIsNamed) {
  SpillOptions o;
  o.folder = folder_.path() + "/none";
  const auto file = BlockFile::open(o, kMiB);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::usage);
  EXPECT_THAT(file.error().message, AllOf(HasSubstr(o.folder), HasSubstr("ENOENT")));
  std::ofstream(o.folder) << "a file";
  EXPECT_THAT(BlockFile::open(o, kMiB).error().message, HasSubstr("is no folder"));
}

TEST_F(BlockFileTest, MoreThanTheLimitOrThanIsFreeIsInfeasibleAndNamesWhatIsNeeded) {
  SpillOptions o = options();
  o.limit = 4 * kMiB;
  const auto limited = BlockFile::open(o, 5 * kMiB);
  ASSERT_FALSE(limited);
  EXPECT_EQ(limited.error().code, ErrorCode::infeasible);
  EXPECT_EQ(limited.error().smallest_feasible, 5 * kMiB);
  EXPECT_THAT(limited.error().message, AllOf(HasSubstr("5.0 MiB"), HasSubstr("4.0 MiB")));
  EXPECT_EQ(BlockFile::room(o), 4 * kMiB);
  EXPECT_TRUE(BlockFile::open(o, 4 * kMiB));
  const Bytes huge = Bytes{1} << 55U;
  EXPECT_EQ(BlockFile::open(options(), huge).error().code, ErrorCode::infeasible);
}

TEST_F(BlockFileTest, MisalignedCopiesAreRefused) {
  BlockFile file = open(kMiB);
  Buffer data(2 * kBlock);
  EXPECT_THAT(error_of([&] { file.write(512, data.data(), kBlock); }), HasSubstr("EINVAL"));
  EXPECT_THAT(error_of([&] { file.write(0, data.data() + 64, kBlock); }), HasSubstr("EINVAL"));
  EXPECT_THAT(error_of([&] { file.read(0, data.data(), 100); }), HasSubstr("EINVAL"));
  EXPECT_EQ(error_of([&] { file.read(0, data.data(), kBlock); }), "no error");
}

TEST_F(BlockFileTest, AFailedWriteIsNotRepeatedAndNamesEverything) {
  FaultPlan faults;
  faults.fail_transfer = {2, 1, EIO, true};
  BlockFile file = open(16 * kMiB, faults);
  Buffer data(16 * kMiB);
  const std::string error =
      error_of([&] { file.write(0, data.data(), 16 * kMiB, "weights of conv1"); });
  EXPECT_THAT(error, AllOf(HasSubstr("cannot write"), HasSubstr(folder_.path()),
                           HasSubstr("offset 8388608"), HasSubstr("4.0 MiB"),
                           HasSubstr("'weights of conv1'"), HasSubstr("EIO")));
  EXPECT_EQ(error_of([&] { file.write(0, data.data(), kMiB); }), "no error");
}

TEST_F(BlockFileTest, AFailedReadIsTriedOnceMore) {
  for (const std::int64_t times : {1, 2}) {
    FaultPlan faults;
    faults.fail_transfer = {1, times, EIO, false};
    BlockFile file = open(12 * kMiB, faults);
    Buffer data(12 * kMiB), seen(12 * kMiB);
    data.fill(5);
    file.write(0, data.data(), 12 * kMiB);
    const std::string error = error_of([&] { file.read(0, seen.data(), 12 * kMiB); });
    if (times == 1) {
      EXPECT_EQ(error, "no error");
      EXPECT_EQ(seen, data);
    } else {
      EXPECT_THAT(error, AllOf(HasSubstr("cannot read"), HasSubstr("EIO")));
    }
  }
}

TEST_F(BlockFileTest, InterruptedAndShortTransfersGoOn) {
  FaultPlan faults;
  faults.fail_transfer = {0, 5, EINTR, {}};
  for (const Bytes most : {Bytes{1}, kBlock, 3 * kBlock + 512}) {
    faults.short_transfers = most;
    BlockFile file = open(kMiB, faults);
    Buffer data(kMiB), seen(kMiB);
    data.fill(6);
    file.write(0, data.data(), kMiB);
    file.read(0, seen.data(), kMiB);
    EXPECT_EQ(seen, data);
  }
}

TEST_F(BlockFileTest, AnErrorInOneOfSeveralThreadsIsThrown) {
  FaultPlan faults;
  faults.fail_transfer = {3, 1, ENOSPC, true};
  BlockFile file = open(8 * kMiB, faults);
  file.set_depth(4);
  Buffer data(8 * kMiB);
  EXPECT_THAT(error_of([&] { file.write(0, data.data(), 8 * kMiB); }), HasSubstr("ENOSPC"));
}

TEST_F(BlockFileTest, ADiskThatFillsUpWhileItIsTakenIsAnErrorAndFreedAgain) {
  FaultPlan faults;
  faults.disk_space = kMiB;
  const auto file = BlockFile::open(options(), 2 * kMiB, faults);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, AllOf(HasSubstr("2.0 MiB"), HasSubstr("ENOSPC")));
}

TEST_F(BlockFileTest, OverTheLimitOfFileSizesIsAnErrorAndNoSignal) {
  const auto child = [&] {
    const rlimit limit{static_cast<rlim_t>(4 * kMiB), static_cast<rlim_t>(4 * kMiB)};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto file = BlockFile::open(options(), 8 * kMiB);
    std::fprintf(stderr, "%s\n", file ? "opened" : file.error().message.c_str());
    ::_exit(0);
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), "cannot take 8.0 MiB of disk.*EFBIG");
}

/// Writes until it is killed; says so in `told` once a transfer is under way.
[[noreturn]] void write_for_ever(const SpillOptions& options, Bytes bytes, int told) {
  auto file = BlockFile::open(options, bytes);
  if (!file) ::_exit(1);
  const Buffer data(bytes);
  for (bool first = true;; first = false) {
    file->write(0, data.data(), bytes);
    if (first && ::write(told, "w", 1) != 1) ::_exit(2);
  }
}

TEST_F(BlockFileTest, AProcessKilledInMidTransferLeavesTheDiskAsItWas) {
  const SmallDisk disk("mkfs.ext4", 128 * kMiB);
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  constexpr Bytes kBytes = 64 * kMiB;
  SpillOptions o;
  o.folder = disk.path();
  o.limit = kBytes;
  const Bytes before = free_on(disk.path());
  int told[2];
  ASSERT_EQ(::pipe(told), 0);
  const pid_t child = ::fork();
  if (child == 0) write_for_ever(o, kBytes, told[1]);
  char byte = 0;
  ASSERT_EQ(::read(told[0], &byte, 1), 1);
  EXPECT_LE(free_on(disk.path()), before - kBytes);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(free_on(disk.path()), before);
  ::close(told[0]);
  ::close(told[1]);
}

TEST_F(BlockFileTest, AFullDiskIsInfeasibleBeforeAnythingIsTaken) {
  const SmallDisk disk("mkfs.ext4", 64 * kMiB);
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  SpillOptions o;
  o.folder = disk.path();
  o.limit = kGiB;
  const Bytes before = free_on(disk.path());
  const auto file = BlockFile::open(o, 100 * kMiB);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::infeasible);
  EXPECT_EQ(free_on(disk.path()), before);
  EXPECT_TRUE(BlockFile::open(o, 16 * kMiB));
  o.limit = 0;
  EXPECT_EQ(BlockFile::room(o), 0) << "1 GiB is spared";
}

TEST_F(BlockFileTest, WhereSpaceCannotBeTakenAheadAFullDiskIsAnErrorOfTheWrite) {
  const SmallDisk disk("mkfs.ext2", 64 * kMiB);
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  SpillOptions o;
  o.folder = disk.path();
  o.limit = kGiB;
  auto file = BlockFile::open(o, 32 * kMiB);
  ASSERT_TRUE(file) << file.error().message;
  Buffer data(32 * kMiB), seen(kMiB);
  data.fill(9);
  file->write(4 * kMiB, data.data(), kMiB);
  file->read(4 * kMiB, seen.data(), kMiB);
  EXPECT_EQ(std::memcmp(seen.data(), data.data(), static_cast<std::size_t>(kMiB)), 0);
  // Somebody else takes the rest.
  std::ofstream other(disk.path() + "/other", std::ios::binary);
  const std::string megabyte(static_cast<std::size_t>(kMiB), 'x');
  while (other << megabyte && other.flush()) {
  }
  EXPECT_THAT(error_of([&] { file->write(0, data.data(), 32 * kMiB); }), HasSubstr("ENOSPC"));
}

TEST_F(BlockFileTest, WithoutDirectTransfersItGoesOnThroughThePageCacheWithAWarning) {
  // Such an ext4 opens files with O_DIRECT and has no direct transfers.
  const SmallDisk disk("mkfs.ext4", 64 * kMiB, "loop,data=journal");
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  SpillOptions o;
  o.folder = disk.path();
  o.limit = 16 * kMiB;
  auto file = BlockFile::open(o, 8 * kMiB);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_FALSE(file->direct());
  EXPECT_THAT(file->kind(), HasSubstr("ext4, through the page cache"));
  EXPECT_THAT(file->warning(), HasSubstr(disk.path()));
  Buffer data(8 * kMiB), seen(8 * kMiB);
  data.fill(4);
  file->write(0, data.data(), 8 * kMiB);
  file->read(0, seen.data(), 8 * kMiB);
  EXPECT_EQ(seen, data);
  EXPECT_LT(*file->cached(), kMiB) << "what has been copied does not stay";
  EXPECT_THAT(error_of([&] { file->read(0, seen.data() + 64, kBlock); }), HasSubstr("EINVAL"));
}

TEST_F(BlockFileTest, BtrfsAndXfsHaveDirectTransfers) {
  for (const std::string name : {"btrfs", "xfs"}) {
    SCOPED_TRACE(name);
    const SmallDisk disk("mkfs." + name, 320 * kMiB);
    if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
    SpillOptions o;
    o.folder = disk.path();
    o.limit = 16 * kMiB;
    auto file = BlockFile::open(o, 8 * kMiB);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->kind(), name + ", direct");
    Buffer data(8 * kMiB), seen(8 * kMiB);
    data.fill(4);
    for (int round = 0; round < 2; ++round) {  // btrfs: in place
      file->write(0, data.data(), 8 * kMiB);
      file->read(0, seen.data(), 8 * kMiB);
      EXPECT_EQ(seen, data);
    }
    EXPECT_EQ(*file->cached(), 0);
    EXPECT_EQ(file_system_of(disk.path())->copies_on_write, name == "btrfs");
  }
}

/// Regression: direct transfers worked, and the pages below were memory.
TEST_F(BlockFileTest, AnOverlayOverMemoryIsRefused) {
  const testing::TemporaryFolder folder;
  const std::string memory = folder.path().string();
  if (::mount("tmpfs", memory.c_str(), "tmpfs", 0, "size=32M") != 0) {
    GTEST_SKIP() << "no tmpfs: " << describe_errno(errno);
  }
  for (const char* part : {"/lower", "/upper", "/work", "/merged"}) {
    std::filesystem::create_directory(memory + part);
  }
  const std::string merged = memory + "/merged";
  const std::string parts =
      "lowerdir=" + memory + "/lower,upperdir=" + memory + "/upper,workdir=" + memory + "/work";
  const int reason =
      ::mount("overlay", merged.c_str(), "overlay", 0, parts.c_str()) == 0 ? 0 : errno;
  if (reason == 0) {
    SpillOptions o;
    o.folder = merged;
    o.limit = 16 * kMiB;
    const auto file = BlockFile::open(o, 8 * kMiB);
    EXPECT_FALSE(file);
    if (!file) {
      EXPECT_EQ(file.error().code, ErrorCode::usage);
      EXPECT_THAT(file.error().message, HasSubstr("is in memory (below an overlay)"));
    }
    ::umount2(merged.c_str(), MNT_DETACH);
  }
  ::umount2(memory.c_str(), MNT_DETACH);
  if (reason != 0) GTEST_SKIP() << "no overlay: " << describe_errno(reason);
}

TEST_F(BlockFileTest, AnOverlayServesAsWhatIsBelowIt) {
  const SmallDisk disk("mkfs.ext4", 64 * kMiB);
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  for (const char* part : {"/lower", "/upper", "/work", "/merged"}) {
    std::filesystem::create_directory(disk.path() + part);
  }
  const std::string merged = disk.path() + "/merged";
  const std::string parts = "lowerdir=" + disk.path() + "/lower,upperdir=" + disk.path() +
                            "/upper,workdir=" + disk.path() + "/work";
  if (::mount("overlay", merged.c_str(), "overlay", 0, parts.c_str()) != 0) {
    GTEST_SKIP() << "no overlay: " << describe_errno(errno);
  }
  SpillOptions o;
  o.folder = merged;
  o.limit = 16 * kMiB;
  {
    auto file = BlockFile::open(o, 8 * kMiB);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_THAT(file->kind(), HasSubstr("overlay"));
    EXPECT_TRUE(std::filesystem::is_empty(merged));
    Buffer data(8 * kMiB), seen(8 * kMiB);
    data.fill(4);
    file->write(0, data.data(), 8 * kMiB);
    file->read(0, seen.data(), 8 * kMiB);
    EXPECT_EQ(seen, data);
    if (file->direct()) {
      EXPECT_EQ(*file->cached(), 0);
    }
  }
  ::umount2(merged.c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace tidepool
