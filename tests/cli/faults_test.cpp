// What goes wrong around a training: the device, the disk, the process itself. Each ends in a clear
// error with nothing half-written, or in the same result later. Nothing here asserts a time.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "support/cli_fixture.h"
#include "support/struck_training.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::iterations_in;
using ::testing::Not;
using testing::run_process;
using testing::struck;

using Arguments = std::vector<std::string>;

constexpr int kIterationsPerEpoch = 20;

class FaultsTest : public testing::Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    ::unsetenv("TIDEPOOL_TEST_FAULTS");
  }
  void TearDown() override { ::unsetenv("TIDEPOOL_TEST_FAULTS"); }

  /// With stated algorithms and rounds: those a planner chooses go by the link, and bits with them.
  static Arguments fit(int epochs, Arguments more = {}) {
    Arguments a{"train",         "tiny-vgg",
                "--batch",       "500",
                "--sub-batch",   "500",
                "--algorithms",  "least-workspace",
                "--data",        "synthetic",
                "--link",        "2GB",
                "--threads",     "1",
                "--budget",      "60%",
                "--evaluations", "200",
                "--time-limit",  "1ns",
                "--epochs",      std::to_string(epochs),
                "--no-evaluate"};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
  /// The same program on a device with faults.
  static Finished faulty(Arguments arguments, const char* faults) {
    ::setenv("TIDEPOOL_TEST_FAULTS", faults, 1);
    arguments = testing::with_short_search(std::move(arguments));
    arguments.insert(arguments.begin(), TIDEPOOL_FAULTY_BINARY);
    Finished f = run_process(std::move(arguments));
    ::unsetenv("TIDEPOOL_TEST_FAULTS");
    EXPECT_FALSE(f.timed_out) << "hangs";
    EXPECT_EQ(f.signal, 0);
    return f;
  }
  /// Checksum of all state after `epochs` epochs that nothing disturbed.
  std::int64_t undisturbed(int epochs) {
    const auto [known, fresh] = undisturbed_.try_emplace(epochs, 0);
    if (fresh) known->second = success(fit(epochs))["state_crc32"];
    return known->second;
  }
  static std::int64_t resumed(int epochs, const std::string& checkpoint) {
    return success(fit(epochs, {"--resume", checkpoint}))["state_crc32"];
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& f : std::filesystem::directory_iterator(folder_.path())) {
      if (f.is_regular_file()) names.push_back(f.path().filename().string());
    }
    return names;
  }

 private:
  std::map<int, std::int64_t> undisturbed_;  ///< by epochs
};

// ---- the device

TEST_F(FaultsTest, AFaultOfTheDeviceEndsWith1AndLeavesTheLastCheckpoint) {
  const std::string checkpoint = folder_.file("c.ckpt");
  const std::string profile = folder_.file("profile.json");
  success(fit(1, {"--checkpoint", checkpoint}));
  success({"profile", "tiny-vgg", "--batch", "500", "--data", "synthetic", "--link", "2GB",
           "--threads", "1", "-o", profile});
  const std::string saved = testing::content_of(checkpoint);
  const Arguments second =
      fit(2, {"--resume", checkpoint, "--checkpoint", checkpoint, "--profile", profile});
  // Inputs and losses alone are that many copies in an epoch of 40 iterations, whatever the plan.
  const std::pair<const char*, const char*> cases[] = {
      {"copy-to-host=0", "to the host failed"},
      {"copy-to-host=30", "to the host failed"},
      {"copy-to-device=0", "to the device failed"},
      {"copy-to-device=60 late-us=200", "to the device failed"},
      {"launch=500", "a kernel failed"},
      {"host-memory=4096", "cannot allocate the host arena"},
  };
  for (const auto& [faults, message] : cases) {
    const Finished f = faulty(second, faults);
    EXPECT_EQ(f.exit_code, 1) << faults << f.err;
    EXPECT_THAT(f.err, AllOf(HasSubstr("tidepool: "), HasSubstr(message))) << faults;
    EXPECT_THAT(f.out, IsEmpty()) << faults;
    EXPECT_EQ(testing::content_of(checkpoint), saved) << faults;
  }
  EXPECT_EQ(resumed(2, checkpoint), undisturbed(2));
}

TEST_F(FaultsTest, AFaultOfOneOfSeveralDevicesLeavesTheLastCheckpoint) {
  const std::string checkpoint = folder_.file("c.ckpt");
  const auto epochs = [&](const char* count) {
    return Arguments{"train",     "mlp", "--batch",   "500",      "--data",       "synthetic",
                     "--devices", "2",   "--threads", "1",        "--link",       "2GB",
                     "--epochs",  count, "--resume",  checkpoint, "--no-evaluate"};
  };
  Arguments first = epochs("1");
  first[first.size() - 3] = "--checkpoint";
  success(first);
  const std::string saved = testing::content_of(checkpoint);
  for (const char* faults : {"launch=300", "copy-to-host=200", "copy-to-device=200"}) {
    const Finished f = faulty(epochs("2"), faults);
    EXPECT_EQ(f.exit_code, 1) << faults << f.err;
    EXPECT_THAT(f.err, HasSubstr("injected fault")) << faults;
    EXPECT_EQ(testing::content_of(checkpoint), saved) << faults;
  }
}

TEST_F(FaultsTest, AFaultWhileProfilingOrInAVerifiedTrainingEndsWith1) {
  Arguments verify{"train", "tiny-vgg", "--batch", "16",           "--data", "synthetic", "--link",
                   "2GB",   "--budget", "60%",     "--iterations", "3",      "--verify"};
  for (const Arguments& arguments : {fit(1, {"--no-cache"}), verify}) {
    for (const char* faults : {"copy-to-device=3", "launch=30", "host-memory=1000"}) {
      Arguments a = arguments;
      a.push_back("--json");
      const Finished f = faulty(a, faults);
      EXPECT_EQ(f.exit_code, 1) << faults;
      const Json object = Json::parse(f.out, nullptr, false);
      ASSERT_TRUE(object.is_object()) << f.out;
      EXPECT_THAT(object["error"].get<std::string>(), HasSubstr("injected fault"));
    }
  }
}

TEST_F(FaultsTest, LateCopiesAndSlowLinksAreOnlySlower) {
  const auto few = [](const Arguments& more) {
    Arguments all = fit(5, more);
    *std::ranges::find(all, "--epochs") = "--iterations";
    std::erase(all, "--no-evaluate");
    return all;
  };
  const std::int64_t right = success(few({}))["state_crc32"];
  Arguments a = few({"--json", "--no-cache"});
  const Finished late = faulty(a, "late-us=1000");
  ASSERT_EQ(late.exit_code, 0) << late.err;
  EXPECT_EQ(Json::parse(late.out)["state_crc32"], right);
  for (const char* link : {"100MB", "20GB"}) {
    Arguments other = few({});
    *std::find(other.begin(), other.end(), "2GB") = link;
    EXPECT_EQ(success(other)["state_crc32"], right) << link;
  }
  // The plan is for a faster link than the device has.
  const Finished verified =
      faulty({"train", "tiny-vgg", "--batch", "16", "--data", "synthetic", "--link", "10GB",
              "--budget", "40%", "--iterations", "4", "--verify", "--json"},
             "late-us=2000");
  ASSERT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_EQ(Json::parse(verified.out)["identical"], true);
}

// ---- the process

TEST_F(FaultsTest, KilledInMidIterationTheLastWholeCheckpointGoesOnBitForBit) {
  for (const int settle_ms : {0, 60}) {
    const std::string checkpoint = folder_.file(fmt::format("{}.ckpt", settle_ms));
    // So many epochs that it is not over by then.
    const Finished f =
        struck(fit(100'000, {"--checkpoint", checkpoint}), checkpoint, SIGKILL, settle_ms);
    EXPECT_EQ(f.signal, SIGKILL) << f.err;
    const std::int64_t done = iterations_in(checkpoint);
    ASSERT_GT(done, 0);
    EXPECT_EQ(done % kIterationsPerEpoch, 0) << "saved after whole epochs only";
    const auto epochs = static_cast<int>(done / kIterationsPerEpoch) + 1;
    EXPECT_EQ(resumed(epochs, checkpoint), undisturbed(epochs));
  }
}

TEST_F(FaultsTest, InterruptedInMidIterationItIsSavedWhereItStoodAndGoesOnBitForBit) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string checkpoint = folder_.file(fmt::format("{}.ckpt", signal));
    const Finished f = struck(fit(100'000, {"--checkpoint", checkpoint}), checkpoint, signal, 77);
    EXPECT_EQ(f.exit_code, 128 + signal) << f.err;
    const std::int64_t done = iterations_in(checkpoint);
    EXPECT_THAT(f.err, AllOf(HasSubstr(fmt::format("interrupted after {} iterations", done)),
                             HasSubstr("--resume " + checkpoint)));
    const auto epochs = static_cast<int>(done / kIterationsPerEpoch) + 1;
    EXPECT_EQ(resumed(epochs, checkpoint), undisturbed(epochs));
  }
}

TEST_F(FaultsTest, OfTwoTrainingsOnOneCheckpointTheSecondIsRefused) {
  const std::string checkpoint = folder_.file("c.ckpt");
  Arguments first = fit(100'000, {"--checkpoint", checkpoint});
  first.insert(first.begin(), TIDEPOOL_BINARY);
  Finished second;
  const Finished f = run_process(std::move(first), [&](pid_t process) {
    testing::wait_until_exists(process, checkpoint);
    second = tidepool(fit(1, {"--checkpoint", checkpoint, "--overwrite"}));
    ::kill(process, SIGKILL);
  });
  EXPECT_EQ(f.signal, SIGKILL) << f.err;
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, AllOf(HasSubstr("--checkpoint " + checkpoint + ": process "),
                                HasSubstr(" writes to it")));
  // Its lock died with it, although nobody removed it.
  EXPECT_TRUE(std::filesystem::exists(checkpoint + ".lock"));
  const auto epochs = static_cast<int>(iterations_in(checkpoint) / kIterationsPerEpoch) + 1;
  EXPECT_EQ(resumed(epochs, checkpoint), undisturbed(epochs));
  EXPECT_FALSE(std::filesystem::exists(checkpoint + ".lock"));
}

// ---- the disk

TEST_F(FaultsTest, AFullDeviceIsSaidWithItsReason) {
  const Finished f = tidepool(fit(1, {"--checkpoint", "/dev/full"}));
  EXPECT_EQ(f.exit_code, 1);
  EXPECT_THAT(f.err, AllOf(HasSubstr("/dev/full: cannot write"), HasSubstr("No space left")));
}

/// Runs with a limit on the size of files, in blocks of 512 bytes.
Finished with_small_files(Arguments arguments, int blocks) {
  Arguments shell{"/bin/sh", "-c", fmt::format("ulimit -f {}; exec \"$@\"", blocks), "sh",
                  TIDEPOOL_BINARY};
  arguments = testing::with_short_search(std::move(arguments));
  shell.insert(shell.end(), arguments.begin(), arguments.end());
  return run_process(std::move(shell));
}

TEST_F(FaultsTest, ACheckpointThatCannotBeWrittenWholeLeavesTheOldOne) {
  const std::string checkpoint = folder_.file("c.ckpt");
  success(fit(1, {"--checkpoint", checkpoint}));
  const std::string saved = testing::content_of(checkpoint);
  const auto before = files();
  const Finished f =
      with_small_files(fit(3, {"--resume", checkpoint, "--checkpoint", checkpoint}), 8);
  EXPECT_EQ(f.signal, 0) << "the limit's signal ended it";
  EXPECT_EQ(f.exit_code, 1) << f.err;
  EXPECT_THAT(f.err, AllOf(HasSubstr("c.ckpt: cannot write"), HasSubstr("File too large")));
  EXPECT_THAT(f.out, IsEmpty()) << "known before the epoch";
  EXPECT_EQ(testing::content_of(checkpoint), saved);
  EXPECT_EQ(files(), before) << "nothing is left beside it";
  EXPECT_EQ(resumed(2, checkpoint), undisturbed(2));
}

TEST_F(FaultsTest, ACacheThatCannotBeWrittenWholeHasNothingInIt) {
  const Finished f = with_small_files(fit(1), 8);
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.err, HasSubstr("not kept in the cache"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path() / "cache/tidepool"));
}

TEST_F(FaultsTest, WhatCannotBeKeptIsNotPromisedToTheNextTraining) {
  const Finished f = with_small_files({"train", "tiny-vgg", "--batch", "16", "--data", "synthetic",
                                       "--threads", "1", "--budget", "50%", "--iterations", "20"},
                                      8);
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.err, HasSubstr("not kept in the cache"));
  EXPECT_THAT(f.out, Not(HasSubstr("the next training goes on from here")));
}

TEST_F(FaultsTest, APlanThatCannotBeWrittenWholeIsNotThere) {
  const std::string path = folder_.file("plan.json");
  const Finished f = with_small_files(
      {"plan", "tiny-vgg", "--batch", "16", "--machine", "gtx1080ti", "--no-cache", "-o", path}, 8);
  EXPECT_EQ(f.exit_code, 1) << f.err;
  EXPECT_THAT(f.err, HasSubstr("plan.json: cannot write"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace tidepool
