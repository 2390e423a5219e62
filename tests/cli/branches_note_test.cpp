// A network with branches that iterations skip at random, from the command line.
#include "branches_note.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "nn/data/fashion_mnist.h"
#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using testing::Cli;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(BranchesNote, CountsGuardsAndSaysNothingWithoutThem) {
  Program program;
  EXPECT_EQ(cli::branches_note(program, "  "), "");
  program.ops.resize(4);
  program.ops[1].guard = program.ops[2].guard = 7;
  program.ops[3].guard = 0;
  EXPECT_EQ(cli::count_branches(program), 2);
  EXPECT_THAT(cli::branches_note(program, "  "),
              HasSubstr("  times are of iterations that run all 2"));
}

std::vector<std::string> train_branches(const std::vector<std::string>& more) {
  std::vector<std::string> all = {"train", "tiny-resnet-sd", "--link", "500MB", "--threads", "1"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_F(Cli, EveryPlannerPlansBranchesAndItsPlanIsProvedAndSimulated) {
  const std::string path = folder_.file("plan.json");
  for (const Json& planner : success({"planners"}).at("planners")) {
    const std::string name = planner.at("name");
    if (name == "none") continue;
    SCOPED_TRACE(name);
    const Json plan =
        success({"plan", "tiny-resnet-sd", "--batch", "16", "--machine", "gtx1080ti", "--budget",
                 "60%", "--planner", name, "--evaluations", "100", "-o", path});
    EXPECT_EQ(plan["branches"], 3);
    EXPECT_LE(plan["footprint_bytes"], plan["budget_bytes"]);
    success({"check", path});
    EXPECT_THAT(tidepool({"simulate", path}).out, HasSubstr("that run all 3 branches"));
  }
  EXPECT_THAT(tidepool({"simulate", saved_plan()}).out, Not(HasSubstr("branches")));
}

TEST_F(Cli, TrainsBranchesBitForBitAndPredictsTheIterationsItDraws) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--budget", "60%"},
        {"--budget", "75%", "--storage", "separate", "--planner", "autoswap"},
        {"--budget", "60%", "--sub-batch", "8", "--sub-batch-statistics"},
        {"--budget", "80%", "--devices", "2", "--sub-batch-statistics"}}) {
    SCOPED_TRACE(more.back());
    std::vector<std::string> arguments =
        train_branches({"--batch", "16", "--data", "synthetic", "--iterations", "8", "--verify"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Json j = success(arguments);
    EXPECT_EQ(j["identical"], true);
    EXPECT_EQ(j["branches"], 3);
    EXPECT_LE(j["arena_peak_bytes"], j["budget_bytes"]);
    EXPECT_GT(j["predicted_ms"], 0);
  }
  // Where no copy is waited for, what is skipped is saved.
  const Json unlimited =
      success(train_branches({"--batch", "16", "--data", "synthetic", "--iterations", "20"}));
  EXPECT_LT(unlimited["predicted_ms"], unlimited["predicted_all_branches_ms"]);
  const Json plain = success({"train", "tiny-resnet", "--batch", "16", "--data", "synthetic",
                              "--link", "500MB", "--threads", "1", "--iterations", "3"});
  EXPECT_EQ(plain["branches"], 0);
  EXPECT_EQ(plain["predicted_ms"], plain["predicted_all_branches_ms"]);
}

/// The smallest feasible budget, which an error names.
TEST_F(Cli, TrainsBranchesInTheSmallestBudget) {
  std::vector<std::string> arguments = train_branches(
      {"--batch", "16", "--data", "synthetic", "--iterations", "4", "--verify", "--budget", "1"});
  const Json error = expect_error(arguments, 4, HasSubstr("smallest feasible"));
  arguments.back() = std::to_string(error["smallest_feasible_bytes"].get<std::int64_t>());
  EXPECT_EQ(success(arguments)["identical"], true);
}

TEST_F(Cli, ATrainingWithBranchesLearnsFashionMnist) {
  if (!std::filesystem::exists(std::string(nn::kFashionMnistFolder) +
                               "/t10k-images-idx3-ubyte.gz")) {
    GTEST_SKIP() << "Debian's dataset-fashion-mnist is not installed";
  }
  const Json j = success(
      train_branches({"--batch", "20", "--budget", "60%", "--iterations", "110", "--verify"}));
  EXPECT_EQ(j["identical"], true);
  const auto losses = j["losses"].get<std::vector<double>>();
  ASSERT_EQ(losses.size(), 110U);
  const auto mean = [&](std::ptrdiff_t from) {
    return std::accumulate(losses.begin() + from, losses.begin() + from + 10, 0.0) / 10;
  };
  EXPECT_LT(mean(100), 0.7 * mean(0));
}

}  // namespace
}  // namespace tidepool
