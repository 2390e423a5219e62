// A CPU device with a file: what lies there comes back, errors name what they were about, memory is
// taken and given back where it is asked for.
#include "device/file/file_space.h"

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "device/cpu/cpu_device.h"
#include "schedule/plan_totals.h"
#include "support/disks.h"
#include "support/fault_runs.h"
#include "support/spaces.h"
#include "support/three_tiers.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::DiskFolder;
using ::testing::HasSubstr;

constexpr SpaceId kFile = 2;
constexpr Bytes kPage = 4096;

class CpuFileSpace : public ::testing::Test {
 protected:
  void SetUp() override { ::alarm(120); }
  void TearDown() override { ::alarm(0); }

  [[nodiscard]] CpuDeviceOptions options() const {
    CpuDeviceOptions o;
    o.threads = 1;
    o.spill.emplace();
    o.spill->folder = folder_.path();
    return o;
  }
  static DeviceConfig config(Bytes device = 4 * kMiB, Bytes file = 16 * kMiB) {
    DeviceConfig c{device, kMiB, {StreamKind::compute, StreamKind::copy, StreamKind::copy}};
    c.arenas.push_back({SpaceKind::file, file});
    return c;
  }
  static void fill(std::byte* at, Bytes bytes, std::uint64_t seed) {
    for (Bytes i = 0; i < bytes; ++i) {
      at[i] = static_cast<std::byte>(mix64(seed + static_cast<std::uint64_t>(i)));
    }
  }
  static std::string error_of(CpuDevice& device) {
    try {
      device.synchronize();
    } catch (const DeviceError& error) {
      return error.what();
    }
    return "no error";
  }
  /// Of the file that was opened last.
  [[nodiscard]] int descriptor() const {
    int found = -1;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code none;
      const auto target = std::filesystem::read_symlink(entry.path(), none).string();
      if (target.find(folder_.path() + "/") == 0) {
        found = std::max(found, std::stoi(entry.path().filename().string()));
      }
    }
    return found;
  }
  /// Pages of this range that are in memory.
  static Bytes resident(const std::byte* at, Bytes bytes) {
    std::vector<unsigned char> pages(static_cast<std::size_t>(bytes / kPage));
    if (::mincore(const_cast<std::byte*>(at), static_cast<std::size_t>(bytes), pages.data()) != 0) {
      return -1;
    }
    return std::ranges::count_if(pages, [](unsigned char page) { return (page & 1U) != 0; });
  }

  DiskFolder folder_;
};

TEST_F(CpuFileSpace, BytesOfDeviceAndHostComeBackFromTheFile) {
  CpuDevice device(options());
  device.open(config());
  EXPECT_EQ(device.arena(kFile), nullptr);
  EXPECT_EQ(device.alignment(), BlockFile::kAlignment);
  constexpr Bytes kOdd = 700'001;
  fill(device.arena(), kOdd, 1);
  fill(device.host_arena(), kOdd, 2);
  device.copy(1, {kFile, 0}, {0, 0}, kOdd);
  device.copy(1, {kFile, kMiB}, {1, 0}, kOdd);
  device.synchronize();
  std::memset(device.host_arena(), 0, static_cast<std::size_t>(kOdd));
  device.copy(1, {0, 2 * kMiB}, {kFile, 0}, kOdd);
  device.copy(2, {1, 0}, {kFile, kMiB}, kOdd);
  device.synchronize();
  EXPECT_EQ(std::memcmp(device.arena() + 2 * kMiB, device.arena(), kOdd), 0);
  std::vector<std::byte> second(static_cast<std::size_t>(kOdd));
  fill(second.data(), kOdd, 2);
  EXPECT_EQ(std::memcmp(device.host_arena(), second.data(), kOdd), 0);

  const FileTraffic traffic = device.file_traffic();
  const Bytes rounded = align_up(kOdd, kPage);
  EXPECT_EQ(traffic.size, 16 * kMiB);
  EXPECT_EQ(traffic.written.bytes, 2 * rounded);
  EXPECT_EQ(traffic.written.copies, 2);
  EXPECT_GT(traffic.written.time, Nanos{0});
  EXPECT_EQ(traffic.read.bytes, 2 * rounded);
  EXPECT_EQ(traffic.read.copies, 2);
  EXPECT_NE(traffic.kind, "");
}

TEST_F(CpuFileSpace, OnlyADeviceWithAFolderHasOne) {
  CpuDeviceOptions o = options();
  o.spill.reset();
  EXPECT_THROW(CpuDevice(o).open(config()), DeviceError);
  CpuDevice with(options());
  with.open({kMiB, kMiB, {StreamKind::compute}});
  EXPECT_EQ(with.file_traffic().kind, "") << "a plan without a file takes no disk";
  o = options();
  o.spill->folder = "/dev/shm";
  CpuDevice in_memory(o);
  try {
    in_memory.open(config());
    FAIL() << "nothing was thrown";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("is in memory"));
  }
}

TEST_F(CpuFileSpace, AFileThatFindsNoRoomIsNoFailureOfTheDevice) {
  CpuDeviceOptions o = options();
  o.spill->limit = kMiB;
  CpuDevice device(o);
  try {
    device.open(config());
    FAIL() << "no exception";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), ErrorCode::infeasible) << error.what();
  }
}

TEST_F(CpuFileSpace, StatedSpeedsPaceCopiesAndDirectionsInTurnWaitForEachOther) {
  for (const bool duplex : {false, true}) {
    CpuDeviceOptions o = options();
    o.spill->write_speed = 200e6;
    o.spill->read_speed = 400e6;
    o.spill->paced_duplex = duplex;
    CpuDevice device(o);
    device.open(config(32 * kMiB, 32 * kMiB));
    const Nanos begin = device.now();
    device.copy(1, {kFile, 0}, {0, 0}, 8 * kMiB);
    device.copy(2, {0, 16 * kMiB}, {kFile, 16 * kMiB}, 16 * kMiB);
    device.synchronize();
    const auto least = from_seconds(8 * kMiB / 200e6);  // both take as long
    EXPECT_GE(device.now() - begin, duplex ? least : 2 * least);
    EXPECT_GE(device.file_traffic().written.time, least);
    EXPECT_GE(device.file_traffic().read.time, least);
  }
}

TEST_F(CpuFileSpace, AFailedTransferNamesTheTensor) {
  for (const bool write : {true, false}) {
    CpuDeviceOptions o = options();
    o.faults.fail_transfer = {1, 2, EIO, write};
    CpuDevice device(o);
    device.open(config());
    for (const bool out : {true, false}) {
      for (int i = 0; i < 2; ++i) {
        const Location memory{0, 0};
        const Location file{kFile, i * kMiB};
        device.name_copy(i == 1 ? "weights" : "others");
        device.copy(1, out ? file : memory, out ? memory : file, kMiB);
      }
    }
    const std::string error = error_of(device);
    EXPECT_THAT(error, HasSubstr(write ? "cannot write" : "cannot read"));
    EXPECT_THAT(error,
                AllOf(HasSubstr("'weights'"), HasSubstr("offset 1048576"), HasSubstr("EIO")));
  }
}

TEST_F(CpuFileSpace, AFlippedBitIsFoundWhereThatIsAskedFor) {
  for (const bool verify : {true, false}) {
    CpuDeviceOptions o = options();
    o.spill->verify = verify;
    CpuDevice device(o);
    device.open(config());
    fill(device.arena(), kMiB, 3);
    device.copy(1, {kFile, kMiB}, {0, 0}, kMiB);
    device.copy(1, {0, kMiB}, {kFile, kMiB}, kMiB);
    ASSERT_EQ(error_of(device), "no error");
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor());
    const int fd = ::open(path.c_str(), O_RDWR);
    ASSERT_GE(fd, 0) << path;
    char byte = 0;
    ASSERT_EQ(::pread(fd, &byte, 1, kMiB + 5 * kPage + 77), 1);
    byte = static_cast<char>(byte ^ 4);
    ASSERT_EQ(::pwrite(fd, &byte, 1, kMiB + 5 * kPage + 77), 1);
    ASSERT_EQ(::fsync(fd), 0);
    ::close(fd);
    device.name_copy("weights");
    device.copy(1, {0, kMiB}, {kFile, kMiB}, kMiB);
    EXPECT_THAT(
        error_of(device),
        HasSubstr(verify ? "offset 1069056 ('weights') is not what was written" : "no error"));
    EXPECT_NE(std::memcmp(device.arena() + kMiB, device.arena(), kMiB), 0);
  }
}

TEST_F(CpuFileSpace, ReadingWhatNobodyWroteIsFoundToo) {
  CpuDeviceOptions o = options();
  o.spill->verify = true;
  CpuDevice device(o);
  device.open(config());
  device.copy(1, {0, 0}, {kFile, 0}, kPage);
  EXPECT_THAT(error_of(device), HasSubstr("nothing was"));
}

TEST_F(CpuFileSpace, MemoryIsTakenWhenItIsAskedFor) {
  CpuDevice device(options());
  constexpr Bytes kSize = 4 * kMiB + 5 * kPage;
  device.open(config(kSize));
  std::byte* const arena = device.arena();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena) % (2 * kMiB), 0);
  EXPECT_EQ(resident(arena, kSize), 0);
  device.populate({0, 0}, kSize);
  EXPECT_EQ(resident(arena, kSize), kSize / kPage);
  fill(arena, kSize, 1);
  std::vector<std::byte> before(arena, arena + kSize);
  device.populate({0, 0}, kSize);
  EXPECT_EQ(std::memcmp(arena, before.data(), before.size()), 0) << "what was there stays";
  // From within a page to within another: only whole pages go.
  device.discard({0, 2 * kMiB + 100}, kMiB);
  EXPECT_EQ(resident(arena, kSize), kSize / kPage - kMiB / kPage + 1);
  const Bytes gone = 2 * kMiB + kPage;
  EXPECT_EQ(std::memcmp(arena, before.data(), static_cast<std::size_t>(gone)), 0);
  EXPECT_EQ(arena[gone], std::byte{0});
  EXPECT_EQ(std::memcmp(arena + 3 * kMiB, before.data() + 3 * kMiB, kSize - 3 * kMiB), 0);
}

TEST_F(CpuFileSpace, WithoutAFileMemoryIsTakenAtOnceAndStays) {
  CpuDeviceOptions o = options();
  o.spill.reset();
  CpuDevice device(o);
  device.open({kMiB, kMiB, {StreamKind::compute}});
  EXPECT_EQ(resident(device.arena(), kMiB), kMiB / kPage);
  device.arena()[kPage] = std::byte{7};
  device.discard({0, 0}, kMiB);
  EXPECT_EQ(device.arena()[kPage], std::byte{7});
}

/// With stays in a file, for blocks of a disk.
testing::SpacedPlan plan_with_file(std::uint64_t seed) {
  const Program program = testing::random_program(seed);
  Machine machine = testing::random_machine(seed);
  machine.set_alignment(BlockFile::kAlignment);
  Lowering lowering(program, machine);
  const Bytes least = smallest_budget(program, BlockFile::kAlignment).bytes;
  const Strategy strategy = testing::random_strategy(program, lowering.index(), 0.7, seed);
  auto lowered = *lowering.lower(strategy, {least + least / 4, 0});
  return testing::FileTier(program, std::move(lowered.plan), machine, seed).make();
}

TEST_F(CpuFileSpace, PlansWithAFileRunAsTheirProgram) {
  int with_file = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const testing::SpacedPlan p = plan_with_file(seed);
    ASSERT_TRUE(check(p.program, p.plan, p.limits));
    CpuDeviceOptions o = options();
    o.spill->verify = true;
    o.spill->depth = 1 + static_cast<int>(seed % 3);
    o.faults.most_late = Nanos{200'000};
    if (seed % 2 == 0) o.faults.short_transfers = kPage;
    CpuDevice device(o);
    testing::TagRunner runner(p.program);
    Executor executor(p.program, p.plan, device, runner);
    executor.enter();
    executor.run(3);
    executor.run(1);
    executor.exit();
    std::vector<std::int32_t> algorithms(p.program.ops.size(), 0);
    for (const Instruction& x : p.plan.steady.instructions) {
      if (x.kind == InstructionKind::op) {
        algorithms[static_cast<std::size_t>(x.op)] = x.algorithm;
      }
    }
    testing::TagRunner meaning(p.program);
    testing::run_in_order(p.program, algorithms, 4, meaning);
    EXPECT_EQ(runner.seen(), meaning.seen());
    EXPECT_EQ(runner.final_values(), meaning.final_values());
    const FileTraffic traffic = device.file_traffic();
    if (traffic.written.bytes > 0) ++with_file;
    EXPECT_EQ(traffic.written.bytes, traffic.read.bytes);
  }
  EXPECT_GT(with_file, 4);
}

TEST_F(CpuFileSpace, BehindTheHostItIsJoinedWithThatAlone) {
  CpuDeviceOptions o = options();
  o.spill->behind_host = true;
  CpuDevice device(o);
  EXPECT_EQ(device.alignment(), 64) << "as without a file";
  DeviceConfig three{kPage, kPage + 64, {StreamKind::compute, StreamKind::copy}};
  three.arenas.push_back({SpaceKind::file, 2 * kPage});
  device.open(three);
  EXPECT_EQ(resident(device.arena(), kPage), 1) << "pinned memory is there from the start";
  device.discard({1, 0}, kPage);
  EXPECT_EQ(resident(device.arena(1), 2 * kPage), 2);
  EXPECT_THROW(device.copy(1, {2, 0}, {0, 0}, 64), DeviceError);
  EXPECT_THROW(device.copy(1, {0, 0}, {2, 0}, 64), DeviceError);
  device.arena(1)[kPage] = std::byte{7};
  device.copy(1, {2, 0}, {1, kPage}, 64);  // a whole block, to the end of the arena
  device.copy(1, {1, 0}, {2, 0}, 64);
  device.synchronize();
  EXPECT_EQ(device.arena(1)[0], std::byte{7});
  EXPECT_EQ(device.file_traffic().written.bytes, kPage);
}

TEST_F(CpuFileSpace, PlansOverThreeTiersRunAsTheirProgram) {
  testing::RandomShape shape;
  shape.most_layers = 5;
  shape.most_words = 512;
  shape.alignment = 64;
  shape.block = BlockFile::kAlignment;
  int with_file = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const auto drawn = testing::random_three_tiers(seed, shape);
    if (!drawn || drawn->whole.plan.arenas.back().bytes == 0) continue;
    const testing::SpacedPlan& p = drawn->whole;
    ASSERT_TRUE(check(p.program, p.plan, p.limits));
    CpuDeviceOptions o = options();
    o.spill->behind_host = true;
    o.spill->verify = true;
    o.faults.most_late = Nanos{200'000};
    if (seed % 2 == 0) o.faults.short_transfers = kPage;
    CpuDevice device(o);
    testing::TagRunner runner(p.program);
    Executor executor(p.program, p.plan, device, runner);
    executor.enter();
    executor.run(3);
    executor.run(1);
    executor.exit();
    testing::TagRunner meaning(p.program);
    testing::run_in_order(p.program, chosen_algorithms(p.program, p.plan), 4, meaning);
    EXPECT_EQ(runner.seen(), meaning.seen());
    EXPECT_EQ(runner.final_values(), meaning.final_values());
    with_file += device.file_traffic().read.bytes > 0 ? 1 : 0;
  }
  EXPECT_GT(with_file, 4);
}

TEST_F(CpuFileSpace, WithoutAPlanValuesInTheFileAreThoseOnTheHost) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed, {5, 64});
    const auto algorithms = least_workspace_algorithms(program);
    const auto run = [&](CpuDevice& device, bool with_file) {
      const Bytes alignment = device.alignment();
      const Bytes least = smallest_budget(program, alignment).bytes;
      const Bytes host =
          Reactive::enough_host_bytes(program, alignment, {}, with_file ? Away::file : Away::host);
      const Bytes file = with_file ? Reactive::enough_file_bytes(program, alignment) : 0;
      auto runner = std::make_unique<testing::TagRunner>(program);
      Reactive reactive(program, algorithms, {least, host, file}, device, *runner);
      reactive.enter();
      reactive.run(3);
      reactive.exit();
      return runner;
    };
    CpuDeviceOptions o = options();
    o.spill->verify = true;
    CpuDevice with_file(o);
    const auto in_file = run(with_file, true);
    o.spill.reset();
    CpuDevice without(o);
    const auto on_host = run(without, false);
    EXPECT_EQ(in_file->seen(), on_host->seen());
    EXPECT_EQ(in_file->final_values(), on_host->final_values());
    EXPECT_GT(with_file.file_traffic().read.bytes, 0);
  }
}

TEST_F(CpuFileSpace, AFailingDiskEndsARunWithTheTensorsName) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const testing::SpacedPlan p = plan_with_file(seed);
    std::string name;
    for (const Instruction& x : p.plan.steady.instructions) {
      if (x.kind != InstructionKind::copy || p.plan.kind_of(x.to) != SpaceKind::file) continue;
      const auto& placement = p.plan.placements[static_cast<std::size_t>(x.to)];
      name = p.program.tensors[static_cast<std::size_t>(placement.tensor)].name;
      break;
    }
    if (name.empty()) continue;
    CpuDeviceOptions o = options();
    o.faults.fail_transfer = {0, 1, ENOSPC, true};
    CpuDevice device(o);
    testing::TagRunner runner(p.program);
    Executor executor(p.program, p.plan, device, runner);
    executor.enter();
    try {
      executor.run(4);
      FAIL() << "nothing was thrown";
    } catch (const DeviceError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("ENOSPC"), HasSubstr("'" + name + "'")));
    }
    EXPECT_TRUE(runner.final_values().empty());
  }
}

}  // namespace
}  // namespace tidepool
