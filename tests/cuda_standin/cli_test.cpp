// The program with the CUDA device alone, on the stand-in. It ends with 97 when it breaks a rule of
// CUDA.
#include <csignal>
#include <filesystem>

#include "support/cli_fixture.h"

namespace tidepool::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CliOnStandin : public Cli {
 protected:
  void TearDown() override {
    for (const char* name : {"STANDIN_CUDNN", "STANDIN_GPUS", "STANDIN_DRIVER", "STANDIN_REPORT"}) {
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
  static void expect_identical(const Json& report) {
    EXPECT_EQ(report.at("identical"), true) << report.dump(1);
  }
};

TEST_F(CliOnStandin, TrainsBitForBitInsideABudgetWithEveryPlanner) {
  const Json planners = success({"planners"});
  for (const Json& planner : planners.at("planners")) {
    const std::string name = planner.at("name");
    if (name == "none") continue;
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

TEST_F(CliOnStandin, TrainsWhereCudnnHasNothingDeterministic) {
  ::setenv("STANDIN_CUDNN", "no-deterministic", 1);
  expect_identical(
      success(train("tiny-resnet", {"--budget", "70%", "--iterations", "4", "--verify"})));
}

TEST_F(CliOnStandin, RunsTheFastestAlgorithmsUnlessToldOtherwise) {
  const std::vector<std::string> profile = {"profile", "tiny-vgg",  "--device", "cuda",
                                            "--data",  "synthetic", "--batch",  "16"};
  EXPECT_THAT(tidepool(profile).out, HasSubstr("(fastest algorithms)"));
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
  const std::string checkpoint = folder_.file("checkpoint");
  std::string said;
  const auto train_mlp = [&](std::vector<std::string> more) {
    std::vector<std::string> all = {"train",   "mlp",  "--device", "cuda", "--data", "synthetic",
                                    "--batch", "5000", "--budget", "200%", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    const Finished f = tidepool(all);
    EXPECT_EQ(f.exit_code, 0) << f.err;
    const std::size_t at = f.err.rfind("CUDA stand-in: ");
    said = at == std::string::npos ? "" : f.err.substr(at);
    return Json::parse(f.out, nullptr, false);
  };
  train_mlp({"--epochs", "1", "--checkpoint", checkpoint});
  const Json resumed = train_mlp({"--epochs", "2", "--resume", checkpoint});
  const std::string allocations = said;
  EXPECT_THAT(allocations, HasSubstr("allocations"));
  const Json whole = train_mlp({"--epochs", "2"});
  EXPECT_EQ(whole.at("state_crc32"), resumed.at("state_crc32"));
  EXPECT_EQ(said, allocations) << "of two epochs as of one";
}

TEST_F(CliOnStandin, StopsWithACheckpointWhenInterrupted) {
  const std::string checkpoint = folder_.file("checkpoint");
  const Finished f =
      tidepool({"train", "tiny-vgg", "--device", "cuda", "--data", "synthetic", "--batch", "16",
                "--budget", "70%", "--epochs", "50", "--checkpoint", checkpoint},
               [](pid_t process) {
                 std::this_thread::sleep_for(std::chrono::seconds(4));
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

}  // namespace
}  // namespace tidepool::testing
