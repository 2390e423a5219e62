// The program with the CUDA device alone, on the stand-in. It ends with 97 when it breaks a rule of
// CUDA.
#include <zlib.h>

#include <csignal>

#include "support/cli_fixture.h"
#include "support/disks.h"
#include "support/standin_seed.h"

namespace tidepool::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CliOnStandin : public Cli {
 protected:
  void write_idx(const std::string& name, const std::vector<std::uint32_t>& dims, int values) {
    std::string bytes = {0, 0, 8, static_cast<char>(dims.size())};
    std::size_t count = 1;
    for (const std::uint32_t dim : dims) {
      for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(dim >> shift & 0xff);
      count *= dim;
    }
    for (std::size_t i = 0; i < count; ++i) {
      bytes += static_cast<char>(static_cast<int>(i * 2654435761U >> 7 & 0xffff) % values);
    }
    gzFile file = ::gzopen(folder_.file(name).c_str(), "wb");
    ASSERT_EQ(::gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
              static_cast<int>(bytes.size()));
    ::gzclose(file);
  }
  void TearDown() override {
    for (const char* name : {"STANDIN_CUDNN", "STANDIN_GPUS", "STANDIN_DIFFERENT_GPUS",
                             "STANDIN_DRIVER", "STANDIN_REPORT"}) {
      ::unsetenv(name);
    }
  }

  static std::vector<std::string> train(const std::string& model,
                                        std::vector<std::string> more = {}) {
    std::vector<std::string> all = {"train",  model,       "--device", "cuda",
                                    "--data", "synthetic", "--batch",  "16"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// Fashion-MNIST's files with a few samples.
  std::string small_data_set() {
    constexpr std::uint32_t kTrain = 96, kTest = 40, kSide = 28;
    for (const auto& [stem, count] : {std::pair{"train", kTrain}, std::pair{"t10k", kTest}}) {
      write_idx(stem + std::string("-images-idx3-ubyte.gz"), {count, kSide, kSide}, 251);
      write_idx(stem + std::string("-labels-idx1-ubyte.gz"), {count}, 10);
    }
    return folder_.path().string();
  }
  static void expect_identical(const Json& report) {
    EXPECT_EQ(report.at("identical"), true) << report.dump(1);
  }
};

TEST_F(CliOnStandin, TrainsBitForBitInsideABudgetWithEveryPlanner) {
  const Json planners = success({"planners"}).at("planners");
  for (std::size_t i = 0; i < planners.size(); ++i) {
    const std::string name = planners[i].at("name");
    if (name == "none" || !is_of_this_run(i)) continue;
    SCOPED_TRACE(name);
    expect_identical(success(train("tiny-vgg", {"--budget", "70%", "--iterations", "4", "--verify",
                                                "--planner", name, "--evaluations", "50"})));
  }
}

TEST_F(CliOnStandin, TrainsBitForBitInGraphsAndWithOtherAlgorithms) {
  const std::vector<std::string> job = {"--budget", "70%", "--iterations", "9", "--verify"};
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--graph", "2"},
        {"--graph", "3", "--optimizer", "adamw"},
        {"--algorithms", "least-workspace", "--storage", "separate"},
        {"--tf32"},
        {"--sub-batch", "8", "--sub-batch-statistics"}}) {
    SCOPED_TRACE(more.front() + more.back());
    std::vector<std::string> arguments = train("tiny-resnet", job);
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_identical(success(arguments));
  }
}

// Each graph is captured for the branches that its iterations draw.
TEST_F(CliOnStandin, TrainsBranchesBitForBitInGraphs) {
  for (const char* per_graph : {"1", "2"}) {
    expect_identical(success(train("tiny-resnet-sd", {"--budget", "70%", "--iterations", "8",
                                                      "--verify", "--graph", per_graph})));
  }
}

TEST_F(CliOnStandin, TrainsWhereCudnnHasNothingDeterministic) {
  ::setenv("STANDIN_CUDNN", "no-deterministic", 1);
  expect_identical(
      success(train("tiny-resnet", {"--budget", "70%", "--iterations", "4", "--verify"})));
}

TEST_F(CliOnStandin, TrainsBitForBitOverThreeTiers) {
  const DiskFolder disk;
  const std::vector<std::string> job =
      train("tiny-vgg", {"--budget", "55%", "--iterations", "4", "--planner", "autoswap"});
  const Bytes host = success(job).at("host_bytes").get<Bytes>() / 2;
  for (const char* per_graph : {"", "2"}) {
    std::vector<std::string> all = job;
    all.insert(all.end(), {"--verify", "--host-budget", std::to_string(host), "--file-tier",
                           "4GB,4GB", "--file-folder", disk.path()});
    if (*per_graph != 0) all.insert(all.end(), {"--graph", per_graph});
    const Json report = success(all);
    expect_identical(report);
    EXPECT_LE(report.at("host_bytes").get<Bytes>(), host);
    EXPECT_GT(report.at("file_tier").at("written_bytes"), 0);
    EXPECT_GT(report.at("file_tier").at("read_bytes"), 0);
  }
  expect_error(train("tiny-vgg", {"--memory", "1GiB", "--spill", disk.path()}), 2,
               HasSubstr("has no file behind it"));
}

TEST_F(CliOnStandin, RunsWhatTheLibraryNamesFirstUnlessToldOtherwise) {
  const std::vector<std::string> profile = {"profile", "tiny-vgg",  "--device", "cuda",
                                            "--data",  "synthetic", "--batch",  "16"};
  EXPECT_THAT(tidepool(profile).out, HasSubstr("(heuristic algorithms)"));
  std::vector<std::string> least = profile;
  least.insert(least.end(), {"--algorithms", "least-workspace"});
  EXPECT_THAT(tidepool(least).out, HasSubstr("(least-workspace algorithms)"));
}

TEST_F(CliOnStandin, RunsSavedPlansAndRefusesThoseOfOtherLibraries) {
  const std::string plan = folder_.file("plan.json");
  success({"plan", "tiny-vgg", "--device", "cuda", "--data", "synthetic", "--batch", "16",
           "--budget", "70%", "-o", plan});
  expect_identical(success(train("tiny-vgg", {"--plan", plan, "--verify", "--iterations", "3"})));
  ::setenv("STANDIN_CUDNN", "larger-workspaces", 1);
  expect_error(train("tiny-vgg", {"--plan", plan, "--iterations", "3"}), 3,
               HasSubstr("is of another program"));
}

TEST_F(CliOnStandin, EpochsShareOneDeviceAndGoOnFromACheckpointBitForBit) {
  ::setenv("STANDIN_REPORT", "1", 1);
  const std::vector<std::string> job = {"mlp", "--device",   "cuda",          "--batch",
                                        "16",  "--data-dir", small_data_set()};
  const auto with = [&](const char* command, const std::vector<std::string>& more) {
    std::vector<std::string> all = {command};
    all.insert(all.end(), job.begin(), job.end());
    all.insert(all.end(), more.begin(), more.end());
    all.emplace_back("--json");
    return all;
  };
  // Of one profile.
  const std::string profile = folder_.file("profile.json");
  EXPECT_EQ(tidepool(with("profile", {"-o", profile})).exit_code, 0);
  const std::string checkpoint = folder_.file("checkpoint");
  std::string allocations;
  const auto train_epochs = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--budget", "120%", "--profile", profile, "--planner", "autoswap"});
    const Finished f = tidepool(with("train", more));
    EXPECT_EQ(f.exit_code, 0) << f.err;
    const std::size_t at = f.err.rfind("CUDA stand-in: ");
    allocations = at == std::string::npos ? "" : f.err.substr(at);
    return Json::parse(f.out, nullptr, false);
  };
  train_epochs({"--epochs", "1", "--checkpoint", checkpoint});
  const std::string of_one = allocations;
  EXPECT_THAT(of_one, HasSubstr("allocations"));
  const Json resumed = train_epochs({"--epochs", "3", "--resume", checkpoint});
  const Json whole = train_epochs({"--epochs", "3"});
  EXPECT_EQ(whole.at("state_crc32"), resumed.at("state_crc32"));
  EXPECT_EQ(allocations, of_one) << "of three epochs as of one";
}

TEST_F(CliOnStandin, NothingTakesMoreOfTheDeviceThanTheBudget) {
  ::setenv("STANDIN_REPORT", "1", 1);
  const Finished f = tidepool(train("tiny-vgg", {"--budget", "500KiB", "--iterations", "3"}));
  EXPECT_EQ(f.exit_code, 0) << f.err;
  constexpr std::string_view kBefore = "the largest of the device ";
  const std::size_t at = f.err.rfind(kBefore);
  ASSERT_NE(at, std::string::npos) << f.err;
  const long largest = std::atol(f.err.c_str() + at + kBefore.size());
  EXPECT_GT(largest, 100 << 10);
  EXPECT_LE(largest, 500 << 10) << "measuring the link included";
}

TEST_F(CliOnStandin, KeepsLinksProfilesAndPlans) {
  const auto from = [&](std::vector<std::string> more) {
    const Json report = success(train("tiny-vgg", more));
    return std::pair(report.at("profile").at("from"), report.at("plan_from"));
  };
  EXPECT_EQ(from({"--budget", "200MiB"}), (std::pair<Json, Json>("measured", "planner")));
  EXPECT_EQ(from({"--budget", "200MiB"}), (std::pair<Json, Json>("cache", "cache")));
  EXPECT_EQ(from({"--budget", "300MiB"}), (std::pair<Json, Json>("cache", "planner")));
}

TEST_F(CliOnStandin, TheFirstDeviceOfTheBuildIsTheDefault) {
  expect_identical(success(
      {"train", "mlp", "--data", "synthetic", "--batch", "16", "--iterations", "2", "--verify"}));
}

TEST_F(CliOnStandin, StopsWithACheckpointWhenInterrupted) {
  const std::string checkpoint = folder_.file("checkpoint");
  const Finished f =
      tidepool({"train", "tiny-vgg", "--device", "cuda", "--data", "synthetic", "--batch", "16",
                "--budget", "70%", "--epochs", "100000", "--checkpoint", checkpoint},
               [&](pid_t process) {
                 testing::wait_until_exists(process, checkpoint);
                 ::kill(process, SIGINT);
               });
  EXPECT_EQ(f.exit_code, 130) << f.err;
  EXPECT_THAT(f.err, AllOf(HasSubstr("interrupted"), Not(HasSubstr("violation"))));
}

TEST_F(CliOnStandin, SaysWhichVersionsAreNeededAndFound) {
  const Json machines = success({"machines"});
  const Json& device = machines.at("devices").at(0);
  EXPECT_THAT(device.at("needs").get<std::string>(),
              AllOf(HasSubstr("driver 5"), HasSubstr("cuBLAS 1"), HasSubstr("cuDNN 9")));
  EXPECT_THAT(device.at("found").get<std::string>(), HasSubstr("driver 999.12.34 for CUDA 1"));
  ::setenv("STANDIN_DRIVER", "11080", 1);
  EXPECT_THAT(tidepool({"machines"}).out,
              AllOf(HasSubstr("the driver is too old: it is for CUDA 11.8"), HasSubstr("needs "),
                    HasSubstr("found ")));
  expect_error(train("tiny-vgg"), 1, HasSubstr("too old"));
}

class CliOnSeveralStandinGpus : public CliOnStandin {
 protected:
  static std::vector<std::string> train_on(int gpus, const std::vector<std::string>& more) {
    std::vector<std::string> all =
        train("tiny-vgg-plain", {"--devices", std::to_string(gpus), "--iterations", "4",
                                 "--algorithms", "least-workspace"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(CliOnSeveralStandinGpus, TrainToTheBitsOfOneGpuThatSumsThePartsInRounds) {
  ::setenv("STANDIN_GPUS", "4", 1);
  for (const int gpus : {2, 4}) {
    const Json alone = success(train_on(1, {"--sub-batch", std::to_string(16 / gpus)}));
    for (const char* accumulation : {"overlapped", "naive"}) {
      SCOPED_TRACE(std::to_string(gpus) + " " + accumulation);
      // Naive, the first also holds a gradient of another and the state of weights.
      const char* budget = accumulation == std::string("naive") ? "150%" : "90%";
      const Json report =
          success(train_on(gpus, {"--budget", budget, "--accumulation", accumulation, "--verify",
                                  "--planner", "autoswap"}));
      expect_identical(report);
      EXPECT_EQ(report.at("losses"), alone.at("losses"));
      EXPECT_EQ(report.at("state_crc32"), alone.at("state_crc32"));
    }
  }
}

TEST_F(CliOnSeveralStandinGpus, TrainInGraphsAndFromSavedPlans) {
  ::setenv("STANDIN_GPUS", "2", 1);
  const Json plain = success(train_on(2, {"--budget", "70%", "--planner", "autoswap"}));
  expect_identical(success(
      train_on(2, {"--budget", "70%", "--graph", "2", "--verify", "--planner", "autoswap"})));
  const std::string path = folder_.file("two.json");
  success({"plan", "tiny-vgg-plain", "--device", "cuda", "--data", "synthetic", "--batch", "16",
           "--devices", "2", "--budget", "70%", "--algorithms", "least-workspace", "--planner",
           "autoswap", "-o", path});
  const std::vector<std::string> planned =
      train("tiny-vgg-plain", {"--devices", "2", "--iterations", "4", "--plan", path});
  const Json from_file = success(planned);
  EXPECT_EQ(from_file.at("state_crc32"), plain.at("state_crc32"));
  // Links and what they share were measured, with all GPUs at once.
  const Json machine = Json::parse(*read_file(path)).at("machine");
  EXPECT_EQ(machine.at("buses").size(), 2U);
  EXPECT_GT(machine.at("spaces").at(1).at("bytes").get<std::int64_t>(), 0);
  ::setenv("STANDIN_GPUS", "1", 1);
  expect_error(planned, 1, HasSubstr("2 GPUs asked for, 1 found"));
}

TEST_F(CliOnSeveralStandinGpus, GoOnFromACheckpointBitForBit) {
  ::setenv("STANDIN_GPUS", "2", 1);
  const std::string checkpoint = folder_.file("checkpoint");
  const auto epochs = [&](const char* count, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"train",        "mlp",
                                    "--device",     "cuda",
                                    "--batch",      "16",
                                    "--data-dir",   small_data_set(),
                                    "--devices",    "2",
                                    "--epochs",     count,
                                    "--algorithms", "least-workspace",
                                    "--budget",     "120%",
                                    "--planner",    "autoswap"};
    all.insert(all.end(), more.begin(), more.end());
    return success(all);
  };
  epochs("1", {"--checkpoint", checkpoint});
  const Json resumed = epochs("2", {"--resume", checkpoint});
  EXPECT_EQ(epochs("2", {}).at("state_crc32"), resumed.at("state_crc32"));
}

TEST_F(CliOnSeveralStandinGpus, TooFewOrDifferentOnesAreRefusedWithTheReason) {
  ::setenv("STANDIN_GPUS", "2", 1);
  expect_error(train("tiny-vgg-plain", {"--devices", "4"}), 1,
               HasSubstr("device 'cuda' cannot be used: 4 GPUs asked for, 2 found"));
  ::setenv("STANDIN_DIFFERENT_GPUS", "1", 1);
  expect_error(train("tiny-vgg-plain", {"--devices", "2"}), 1,
               AllOf(HasSubstr("GPUs 0 and 1 differ"), HasSubstr("CUDA_VISIBLE_DEVICES")));
  success(train("tiny-vgg-plain", {"--iterations", "2"}));
}

TEST_F(CliOnSeveralStandinGpus, TakeNoMoreOfEachThanTheBudget) {
  ::setenv("STANDIN_GPUS", "2", 1);
  ::setenv("STANDIN_REPORT", "1", 1);
  const Finished f = tidepool(train_on(2, {"--budget", "400KiB", "--planner", "autoswap"}));
  EXPECT_EQ(f.exit_code, 0) << f.err;
  constexpr std::string_view kBefore = "the largest of the device ";
  const std::size_t at = f.err.rfind(kBefore);
  ASSERT_NE(at, std::string::npos) << f.err;
  EXPECT_LE(std::atol(f.err.c_str() + at + kBefore.size()), 400 << 10);
}

}  // namespace
}  // namespace tidepool::testing
