// What goes wrong around a training beside a file. Each ends in a clear error with the last
// checkpoint as it was, or in the same result later; the disk is then as it was before. Nothing
// here asserts a time.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <optional>

#include "base/bytes.h"
#include "support/cli_fixture.h"
#include "support/disks.h"
#include "support/struck_training.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Arguments = std::vector<std::string>;

constexpr int kEpochIterations = 10;
/// A little more than the least memory there is a plan for.
constexpr Bytes kSpillRoom = 3 * kMiB;

class SpillFaults : public testing::Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    ::unsetenv("TIDEPOOL_TEST_FAULTS");
    const Json refused = Json::parse(tidepool(in_memory(kMiB, 1, {"--json"})).out);
    ASSERT_TRUE(refused.contains("smallest_feasible_bytes")) << refused.dump();
    memory_ = refused["smallest_feasible_bytes"].get<Bytes>() + kSpillRoom;
  }
  void TearDown() override { ::unsetenv("TIDEPOOL_TEST_FAULTS"); }

  [[nodiscard]] Arguments in_memory(Bytes memory, int epochs, const Arguments& more) const {
    Arguments a{"train",         "mlp",       "--batch",       "1000",
                "--sub-batch",   "1000",      "--algorithms",  "least-workspace",
                "--data",        "synthetic", "--threads",     "1",
                "--planner",     "tide",      "--evaluations", "200",
                "--time-limit",  "1ns",       "--memory",      std::to_string(memory),
                "--spill",       folder(),    "--spill-speed", "8GB,8GB",
                "--spill-limit", "256MiB",    "--epochs",      std::to_string(epochs),
                "--no-evaluate"};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
  [[nodiscard]] Arguments fit(int epochs, const Arguments& more = {}) const {
    return in_memory(memory_, epochs, more);
  }
  /// On a disk of its own where that can be made: nobody else then takes space there.
  [[nodiscard]] const std::string& folder() const {
    return small_.why_not().empty() ? small_.path() : usual_.path();
  }
  /// Nothing else writes there.
  [[nodiscard]] std::optional<Bytes> free_bytes() const {
    if (!small_.why_not().empty()) return std::nullopt;
    return testing::free_on(small_.path());
  }
  static Finished faulty(Arguments arguments, const std::string& faults) {
    ::setenv("TIDEPOOL_TEST_FAULTS", faults.c_str(), 1);
    arguments.insert(arguments.begin(), TIDEPOOL_FAULTY_BINARY);
    Finished f = testing::run_process(std::move(arguments));
    ::unsetenv("TIDEPOOL_TEST_FAULTS");
    EXPECT_FALSE(f.timed_out) << "hangs";
    EXPECT_EQ(f.signal, 0);
    return f;
  }

  testing::DiskFolder usual_;
  testing::SmallDisk small_{"mkfs.ext4", 512 * kMiB};
  Bytes memory_ = 0;
};

TEST_F(SpillFaults, AFailingDiskEndsWith1AndLeavesTheLastCheckpoint) {
  const std::string checkpoint = folder_.file("c.ckpt");
  const Json first = success(fit(1, {"--checkpoint", checkpoint}));
  ASSERT_GT(first["memory"]["written_bytes"].get<Bytes>(), 0);
  const std::string saved = testing::content_of(checkpoint);
  const auto free = free_bytes();
  const std::pair<std::string, std::vector<std::string>> cases[] = {
      {"write=12", {"cannot write", "EIO", "offset", "'"}},
      {fmt::format("write=0 errno={}", ENOSPC), {"cannot write", "ENOSPC"}},
      {fmt::format("write=9 errno={}", EDQUOT), {"cannot write", "EDQUOT"}},
      {fmt::format("write=7 errno={}", EFBIG), {"cannot write", "EFBIG"}},
      {"read=11 times=2", {"cannot read", "EIO", "offset", "'"}},
      {"read=3 times=2 late-us=300 short=8192", {"cannot read", "EIO"}},
      {"disk-space=4096", {"of disk", "ENOSPC"}},
  };
  for (const auto& [faults, messages] : cases) {
    const Finished f = faulty(fit(2, {"--resume", checkpoint}), faults);
    EXPECT_EQ(f.exit_code, 1) << faults << f.err;
    EXPECT_THAT(f.out, IsEmpty()) << faults;
    EXPECT_THAT(f.err, HasSubstr("the file in " + folder()));
    for (const std::string& message : messages) EXPECT_THAT(f.err, HasSubstr(message)) << faults;
    EXPECT_EQ(testing::content_of(checkpoint), saved) << faults;
    EXPECT_EQ(free_bytes(), free) << faults;
  }
}

TEST_F(SpillFaults, OneFailedReadShortAndLateTransfersChangeNoBit) {
  const auto few = [this](const Arguments& more) {
    Arguments all = fit(4, more);
    *std::ranges::find(all, "--epochs") = "--iterations";
    std::erase(all, "--no-evaluate");
    return all;
  };
  const Json undisturbed = success(few({}));
  ASSERT_GT(undisturbed["memory"]["read_bytes"].get<Bytes>(), 0);
  const std::int64_t right = undisturbed["state_crc32"];
  for (const char* faults : {"read=5", "short=4096", "late-us=1500 short=12288"}) {
    const Finished f = faulty(few({"--json", "--spill-verify"}), faults);
    ASSERT_EQ(f.exit_code, 0) << faults << f.out << f.err;
    EXPECT_EQ(Json::parse(f.out)["state_crc32"], right) << faults;
  }
  const Finished without = tidepool(
      {"train", "mlp", "--batch", "1000", "--sub-batch", "1000", "--algorithms", "least-workspace",
       "--data", "synthetic", "--threads", "1", "--link", "8GB", "--iterations", "4", "--json"});
  ASSERT_EQ(without.exit_code, 0) << without.err;
  EXPECT_EQ(Json::parse(without.out)["state_crc32"], right) << "nor does the file";
}

TEST_F(SpillFaults, ASignalLeavesACheckpointToGoOnFromAndNoFile) {
  std::map<int, Json> undisturbed;  // checksums, by epochs
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    const std::string checkpoint = folder_.file(fmt::format("{}.ckpt", signal));
    const auto free = free_bytes();
    const Finished f =
        testing::struck(fit(100'000, {"--checkpoint", checkpoint}), checkpoint, signal, 60);
    if (signal == SIGKILL) {
      EXPECT_EQ(f.signal, SIGKILL);
    } else {
      EXPECT_EQ(f.exit_code, 128 + signal) << f.err;
      EXPECT_THAT(f.err, HasSubstr("--resume " + checkpoint));
    }
    EXPECT_EQ(free_bytes(), free);
    const std::int64_t done = testing::iterations_in(checkpoint);
    ASSERT_GT(done, 0);
    const auto epochs = static_cast<int>(done / kEpochIterations) + 1;
    const auto [known, fresh] = undisturbed.try_emplace(epochs);
    if (fresh) known->second = success(fit(epochs))["state_crc32"];
    EXPECT_EQ(success(fit(epochs, {"--resume", checkpoint}))["state_crc32"], known->second);
  }
}

TEST_F(SpillFaults, AFolderInMemoryIsRefusedAndALimitOfFileSizesIsAnError) {
  Arguments in_shm = fit(1);
  *std::find(in_shm.begin(), in_shm.end(), folder()) = "/dev/shm";
  struct statfs status {};
  if (::statfs("/dev/shm", &status) == 0 && status.f_type == TMPFS_MAGIC) {
    const Finished f = tidepool(in_shm);
    EXPECT_NE(f.exit_code, 0);
    EXPECT_THAT(f.err, HasSubstr("in memory"));
  }
  Arguments small{"/bin/sh", "-c", "ulimit -f 8; exec \"$@\"", "sh", TIDEPOOL_BINARY};
  const Arguments training = fit(1, {"--no-cache"});
  small.insert(small.end(), training.begin(), training.end());
  const Finished limited = testing::run_process(small);
  EXPECT_EQ(limited.signal, 0) << "the limit's signal ended it";
  EXPECT_EQ(limited.exit_code, 1) << limited.err;
}

}  // namespace
}  // namespace tidepool
