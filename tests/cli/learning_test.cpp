// Planners that learn a Q-network: their files, what refuses them, and that libtorch leaves the
// rest of the program as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "planners/registry.h"
#include "support/cli_fixture.h"
#include "support/terminal.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::Cli;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Learning : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    if (!learns("dqn")) GTEST_SKIP() << "this build has no libtorch";
  }

  static std::vector<std::string> plan(std::vector<std::string> more) {
    std::vector<std::string> all{"plan",       "tiny-vgg",     "--batch",  "16",
                                 "--machine",  "gtx1080ti",    "--budget", "60%",
                                 "--no-cache", "--time-limit", "40min"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(Learning, TwoResultsAreNotWrittenToOneFile) {
  const std::string one = folder_.file("one");
  const std::string same = folder_.file("./one");
  const auto learner = {"--planner", "dqn", "--episodes", "2"};
  for (const std::vector<std::string>& files :
       {std::vector<std::string>{"--save-network", one, "--episode-log", same},
        std::vector<std::string>{"--save-network", one, "-o", same}}) {
    std::vector<std::string> more(learner.begin(), learner.end());
    more.insert(more.end(), files.begin(), files.end());
    expect_error(plan(more), 2, HasSubstr("two results cannot be one file"));
    EXPECT_FALSE(std::filesystem::exists(one));
  }
}

TEST_F(Learning, ANetworkWithoutEndIsRefused) {
  expect_error(plan({"--planner", "dqn", "--episodes", "2", "--network", "/dev/zero"}), 3,
               HasSubstr("/dev/zero: has more than"));
}

/// What the planner tried before its first episode is a plan, too.
TEST_F(Learning, AShortLimitHasMoreThanEverythingAway) {
  const Json j = success({"plan", "tiny-vgg", "--batch", "16", "--machine", "gtx1080ti", "--budget",
                          "60%", "--no-cache", "--planner", "dqn", "--time-limit", "1ms"});
  EXPECT_EQ(j["learning"]["fallback"], false);
  EXPECT_EQ(j["learning"]["episodes"].size(), 0U);
  EXPECT_THAT(j["notes"].dump(), HasSubstr("stopped before one was complete"));
}

TEST_F(Learning, NetworksAreSavedAndGoneOnFrom) {
  const std::string log = folder_.file("log.csv");
  std::vector<std::string> saved;
  for (const char* name : {"one", "two"}) {
    saved.push_back(folder_.file(name));
    const Json j = success(plan({"--planner", "dqn", "--episodes", "6", "--save-network",
                                 saved.back(), "--episode-log", log}));
    ASSERT_EQ(j["learning"]["episodes"].size(), 6U);
    EXPECT_GT(j["learning"]["episodes"][5]["steps"], 0);
  }
  EXPECT_TRUE(*read_file(saved[0]) == *read_file(saved[1])) << "the same seed";
  const std::string text = *read_file(log);
  EXPECT_THAT(text, StartsWith("episode,steps,return,overhead,best,loss\n1,"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 7);

  const std::string third = folder_.file("three");
  success(plan({"--planner", "dqn-swap", "--episodes", "6", "--network", saved[0], "--save-network",
                third}));
  EXPECT_TRUE(*read_file(third) != *read_file(saved[0])) << "it has learned more";
  EXPECT_EQ(read_file(third)->size(), read_file(saved[0])->size());
}

TEST_F(Learning, AnUntrainedNetworkTakesNoTrainedOnesPlace) {
  const std::string file = folder_.file("network");
  success(plan({"--planner", "dqn", "--episodes", "6", "--save-network", file}));
  const std::string trained = *read_file(file);
  const Json j =
      success({"plan", "tiny-vgg", "--batch", "16", "--machine", "gtx1080ti", "--budget", "60%",
               "--no-cache", "--planner", "dqn", "--time-limit", "1ms", "--save-network", file});
  ASSERT_EQ(j["learning"]["episodes"].size(), 0U);
  EXPECT_THAT(j["notes"].dump(), HasSubstr("--save-network is not written"));
  EXPECT_TRUE(*read_file(file) == trained);
}

TEST_F(Learning, ATextReportHasReturnAgainstDecisions) {
  const Finished f = tidepool(plan({"--planner", "dqn", "--episodes", "30"}));
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.out, AllOf(HasSubstr("learning"), HasSubstr("decisions"), HasSubstr("\n")));
  const auto rows = std::ranges::count(f.out, '\n');
  EXPECT_GT(rows, 12);
  EXPECT_LT(rows, 30) << f.out;
}

TEST_F(Learning, ARecordIsNeverTakenFromTheCache) {
  const std::vector<std::string> arguments{"plan",      "tiny-vgg",  "--batch",    "16",
                                           "--machine", "gtx1080ti", "--budget",   "60%",
                                           "--planner", "dqn",       "--episodes", "2"};
  EXPECT_EQ(success(arguments)["plan_from"], "planner");
  const Json cached = success(arguments);
  EXPECT_EQ(cached["plan_from"], "cache");
  EXPECT_TRUE(cached["learning"].is_null());
  std::vector<std::string> saving = arguments;
  saving.insert(saving.end(), {"--save-network", folder_.file("network")});
  EXPECT_EQ(success(saving)["plan_from"], "planner");
  EXPECT_TRUE(read_file(folder_.file("network")));
  std::vector<std::string> more = arguments;
  more.back() = "3";
  EXPECT_EQ(success(more)["plan_from"], "planner") << "another number of episodes";
}

TEST_F(Learning, WhereEverythingFitsNoNetworkIsWritten) {
  const std::string file = folder_.file("network");
  const Json j = success({"plan", "tiny-vgg", "--batch", "16", "--machine", "gtx1080ti",
                          "--planner", "dqn", "--no-cache", "--save-network", file});
  EXPECT_THAT(j["notes"].dump(), HasSubstr("--save-network is not written"));
  EXPECT_FALSE(read_file(file));
}

TEST_F(Learning, SettingsAndFilesThatMakeNoSenseAreRefused) {
  for (const char* option : {"--episodes", "--save-network", "--episode-log"}) {
    for (const char* planner : {"tide", "auto"}) {
      expect_error(plan({"--planner", planner, option,
                         option == std::string("--episodes") ? "5" : folder_.file("x")}),
                   2, AllOf(HasSubstr(option), HasSubstr(planner)));
    }
  }
  const std::string garbage = write("garbage", "this is no network");
  expect_error(plan({"--planner", "tide", "--network", garbage}), 2, HasSubstr("--network"));
  for (const char* command : {"plan", "train"}) {
    expect_error({command, "tiny-vgg", "--planner", "dqn", "--network", garbage}, 3,
                 AllOf(HasSubstr("garbage: is no saved network"), HasSubstr("begins otherwise")));
    expect_error({command, "tiny-vgg", "--planner", "dqn", "--network", folder_.file("none")}, 3,
                 HasSubstr("none"));
    expect_error({command, "tiny-vgg", "--planner", "dqn", "--save-network", "/nowhere/x"}, 1,
                 HasSubstr("/nowhere/x"));
  }
  expect_error(plan({"--planner", "dqn", "--episodes", "0"}), 2, HasSubstr("--episodes"));
  expect_error({"compare", "tiny-vgg", "--machine", "gtx1080ti", "--planners", "dqn,dqn-swap",
                "--save-network", folder_.file("x")},
               2, HasSubstr("one planner that learns"));
}

TEST_F(Learning, AComparisonTakesThoseThatLearnOnlyWhenAskedTo) {
  const auto planners = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"compare",   "tiny-vgg",  "--batch",       "16",
                                       "--machine", "gtx1080ti", "--evaluations", "20"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::string names;
    const Json all = success(arguments);
    for (const Json& row : all["rows"]) names += row["planner"].get<std::string>() + " ";
    return names;
  };
  EXPECT_THAT(planners({}), AllOf(HasSubstr("tide"), Not(HasSubstr("dqn"))));
  EXPECT_THAT(planners({"--episodes", "2"}), AllOf(HasSubstr("dqn-swap "), HasSubstr("dqn ")));
}

/// libtorch has OpenMP, oneDNN and a BLAS of the same process: it may change no bit of a training.
TEST_F(Learning, TrainingsAreTheSameBitForBit) {
  const auto train = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"train",    "tiny-vgg", "--data",       "synthetic",
                                       "--batch",  "16",       "--iterations", "3",
                                       "--budget", "60%",      "--threads",    "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return success(arguments);
  };
  const Json with = train({"--planner", "dqn", "--episodes", "3", "--verify"});
  EXPECT_EQ(with["identical"], true);
  EXPECT_EQ(with["learning"]["episodes"].size(), 3U);
  const Json without = train({"--planner", "autoswap"});
  EXPECT_EQ(with["state_crc32"], without["state_crc32"]);
  EXPECT_EQ(with["losses"], without["losses"]);
}

TEST_F(Learning, AutoIsNeverSlowerWithANetwork) {
  const std::string file = folder_.file("network");
  success(plan({"--planner", "dqn", "--episodes", "5", "--save-network", file}));
  const std::vector<std::string> search{
      "plan",      "tiny-vgg", "--batch",       "16",  "--machine", "gtx1080ti", "--budget", "60%",
      "--planner", "auto",     "--evaluations", "200", "--no-cache"};
  std::vector<std::string> with = search;
  with.insert(with.end(), {"--network", file});
  const Json alone = success(search);
  const Json helped = success(with);
  EXPECT_LE(helped["predicted_ms"], alone["predicted_ms"]);
  EXPECT_THAT(helped["notes"].dump(),
              AllOf(HasSubstr("the network's plan takes"),
                    AnyOf(HasSubstr("it helped"), HasSubstr("it was no better"))));
  EXPECT_THAT(alone["notes"].dump(), Not(HasSubstr("network")));
}

TEST_F(Learning, AnInterruptKeepsTheBestPlanAndTheNetwork) {
  const std::string file = folder_.file("network");
  std::vector<std::string> arguments =
      plan({"--planner", "dqn", "--episodes", "1000000", "--save-network", file});
  arguments.insert(arguments.begin(), TIDEPOOL_BINARY);
  const Finished f = testing::interrupted_in_terminal(std::move(arguments), "dqn: episode ");
  EXPECT_EQ(f.exit_code, 130) << f.out;
  EXPECT_THAT(f.out, HasSubstr("interrupted: this is the best plan until then"));
  EXPECT_TRUE(read_file(file));
}

}  // namespace
}  // namespace tidepool
