// train over three tiers as a user meets it: --host-budget with --file-tier.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "base/bytes.h"
#include "support/cli_fixture.h"
#include "support/disks.h"
#include "support/struck_training.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::Finished;
using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

class FileTier : public testing::Cli {
 protected:
  /// Half of it stays on the device.
  [[nodiscard]] Arguments train(const Arguments& more, const char* command = "train") const {
    Arguments a{command,         "tiny-vgg",
                "--batch",       "100",
                "--data",        "synthetic",
                "--link",        "4GB",
                "--threads",     "1",
                "--budget",      "50%",
                "--algorithms",  "least-workspace",
                "--sub-batch",   "100",
                "--planner",     "autoswap",
                "--evaluations", "200",
                "--time-limit",  "1ns"};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
  [[nodiscard]] Arguments in(Bytes host, const Arguments& more = {},
                             const char* command = "train") const {
    Arguments a = train({"--host-budget", std::to_string(host), "--file-tier", "4GB,4GB",
                         "--file-folder", disk_.path()},
                        command);
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
  /// Half of what it takes where it may.
  [[nodiscard]] Bytes little_host() const {
    return success(train({"--iterations", "1"}))["host_bytes"].get<Bytes>() / 2;
  }

  testing::DiskFolder disk_;
};

TEST_F(FileTier, TrainsBitForBitWithEachTierInsideItsLimit) {
  const Bytes host = little_host();
  const Json j = success(in(host, {"--verify", "--file-limit", "64MiB", "--iterations", "4"}));
  EXPECT_EQ(j["identical"], true);
  EXPECT_LE(j["arena_peak_bytes"].get<Bytes>(), j["budget_bytes"].get<Bytes>());
  EXPECT_EQ(j["host_budget_bytes"], host);
  EXPECT_LE(j["host_bytes"].get<Bytes>(), host);
  const Json& file = j["file_tier"];
  EXPECT_GT(file["file_bytes"], 0);
  EXPECT_LE(file["file_bytes"].get<Bytes>(), 64 * kMiB);
  EXPECT_EQ(file["limit_bytes"], 64 * kMiB);
  EXPECT_GT(file["written_bytes_per_iteration"], 0);
  EXPECT_GE(file["read_bytes"].get<Bytes>(), 4 * file["written_bytes_per_iteration"].get<Bytes>());
  EXPECT_EQ(file["folder"], disk_.path());
  EXPECT_EQ(file["speeds"], "stated");
  EXPECT_EQ(j["memory"], nullptr);
  const std::string text = tidepool(in(host, {"--iterations", "2"})).out;
  EXPECT_THAT(text, AllOf(HasSubstr("host "), HasSubstr(" of "), HasSubstr("\n  file       "),
                          HasSubstr("stated, paced"), HasSubstr("\n  wear       ")));
  EXPECT_TRUE(std::filesystem::is_empty(disk_.path())) << "the file has no name";
}

TEST_F(FileTier, AMeasuredDiskIsMeasuredOnceAndSaid) {
  Arguments a = in(little_host(), {"--iterations", "2"});
  *std::ranges::find(a, "4GB,4GB") = "measured";
  const Json j = success(a);
  EXPECT_EQ(j["file_tier"]["speeds"], "measured");
  EXPECT_GT(j["file_tier"]["write_bytes_per_second"], 0);
  EXPECT_GT(j["file_tier"]["read_bytes"], 0);
  const Json again = success(a);
  EXPECT_EQ(again["file_tier"]["write_bytes_per_second"], j["file_tier"]["write_bytes_per_second"]);
}

TEST_F(FileTier, WhereTheHostIsEnoughTheReportSaysSo) {
  const Finished f = tidepool(in(kGiB, {"--iterations", "1"}));
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.out, HasSubstr("not used: the host holds what leaves the device"));
}

TEST_F(FileTier, APlanMadeForItTrains) {
  const std::string plan = folder_.file("plan.json");
  const Bytes host = little_host();
  const Json made = success(in(host, {"-o", plan}, "plan"));
  ASSERT_GT(made["spaces"][2]["bytes"], 0);
  const std::string bytes = std::to_string(host);
  const Arguments run{
      "train",        "tiny-vgg", "--batch",  "100",           "--data", "synthetic",
      "--threads",    "1",        "--link",   "4GB",           "--plan", plan,
      "--iterations", "3",        "--verify", "--host-budget", bytes};
  Arguments with = run;
  with.insert(with.end(), {"--file-tier", "4GB,4GB", "--file-folder", disk_.path()});
  const Json j = success(with);
  EXPECT_EQ(j["identical"], true);
  EXPECT_EQ(j["plan_from"], "file");
  EXPECT_EQ(j["file_tier"]["file_bytes"], made["spaces"][2]["bytes"]);
  expect_error(run, 3, HasSubstr("was made with a file behind the host, this training has none"));
}

TEST_F(FileTier, RefusesWhatCannotBeMeant) {
  expect_error(train({"--file-tier", "1GB,1GB"}), 2, HasSubstr("--host-budget"));
  expect_error(train({"--host-budget", "1GB", "--file-folder", "/var/tmp"}), 2,
               HasSubstr("--file-tier"));
  expect_error(train({"--host-budget", "1GB", "--file-tier", "fast"}), 2, HasSubstr("WRITE,READ"));
  expect_error(train({"--host-budget", "1GB", "--file-tier", "1GB,1GB", "--devices", "2"}), 2,
               HasSubstr("--devices"));
  expect_error(in(kGiB, {"--file-folder", disk_.path() + "/none"}), 2, HasSubstr("--file-folder"));
  expect_error(in(kGiB, {"--spill", disk_.path(), "--memory", "1GiB"}), 2, HasSubstr("--spill"));
}

TEST_F(FileTier, ALimitThatIsTooSmallNamesTheLeastThatWorks) {
  const Json host = expect_error(
      in(8192), 4,
      AllOf(HasSubstr("--host-budget 8192 B"), HasSubstr("even with a file behind it")));
  EXPECT_EQ(host["smallest_feasible_space"], "host");
  const auto least = host["smallest_feasible_bytes"].get<Bytes>();
  EXPECT_LE(success(in(least, {"--iterations", "1"}))["host_bytes"].get<Bytes>(), least);
  const Finished small = tidepool(in(little_host(), {"--file-limit", "8KiB"}));
  EXPECT_EQ(small.exit_code, 4);
  EXPECT_THAT(small.err, AllOf(HasSubstr("--file-limit"), HasSubstr("are enough")));
}

TEST_F(FileTier, AFailingDiskEndsWith1AndNamesFileAndTensor) {
  const Arguments training = in(little_host(), {"--iterations", "4"});
  const auto faulty = [&](const char* faults) {
    ::setenv("TIDEPOOL_TEST_FAULTS", faults, 1);
    Arguments a = training;
    a.insert(a.begin(), TIDEPOOL_FAULTY_BINARY);
    Finished f = testing::run_process(std::move(a));
    ::unsetenv("TIDEPOOL_TEST_FAULTS");
    return f;
  };
  ASSERT_EQ(tidepool(training).exit_code, 0);  // profile and plan are in the cache
  for (const auto& [faults, message] : {std::pair{"write=2 errno=28", "cannot write"},
                                        {"read=1 times=2", "cannot read"},
                                        {"disk-space=4096", "of disk"}}) {
    const Finished f = faulty(faults);
    EXPECT_EQ(f.exit_code, 1) << faults << f.err;
    EXPECT_THAT(f.err, AllOf(HasSubstr("the file in " + disk_.path()), HasSubstr(message)));
  }
}

TEST_F(FileTier, ASignalLeavesACheckpointToGoOnFromAndNoFile) {
  const std::string checkpoint = folder_.file("c.ckpt");
  const Bytes host = little_host();
  const auto epochs = [&](int count, const Arguments& more) {
    Arguments a = in(host, {"--no-evaluate", "--epochs", std::to_string(count)});
    a.insert(a.end(), more.begin(), more.end());
    return a;
  };
  const Finished f =
      testing::struck(epochs(100'000, {"--checkpoint", checkpoint}), checkpoint, SIGINT, 60);
  EXPECT_EQ(f.exit_code, 130) << f.err;
  EXPECT_TRUE(std::filesystem::is_empty(disk_.path()));
  const std::int64_t done = testing::iterations_in(checkpoint);
  ASSERT_GT(done, 0);
  const auto next = static_cast<int>(done / 100) + 1;
  const Json resumed = success(epochs(next, {"--resume", checkpoint}));
  EXPECT_GT(resumed["file_tier"]["read_bytes"], 0);
  EXPECT_EQ(resumed["state_crc32"], success(epochs(next, {}))["state_crc32"]);
}

}  // namespace
}  // namespace tidepool
