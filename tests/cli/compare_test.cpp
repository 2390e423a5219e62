// compare and bound, and what they say of each other; trainings in rounds.
#include <map>

#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Arguments = std::vector<std::string>;

class CompareTest : public testing::Cli {
 protected:
  static Arguments tiny(const std::string& command, Arguments more) {
    Arguments a{command, "tiny-vgg", "--batch", "32", "--machine", "gtx1080ti"};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
};

TEST_F(CompareTest, ASweepIsNeverSlowerWithMoreMemory) {
  const Json j = success(tiny("compare", {"--sweep", "90%,40%,60%,100%", "--planners",
                                          "autoswap,tide,none", "--time-limit", "0.2"}));
  ASSERT_EQ(j["rows"].size(), 12U);
  std::map<std::string, double> last;
  std::map<std::pair<std::int64_t, std::string>, double> times;
  for (const Json& row : j["rows"]) {
    const std::string planner = row["planner"];
    if (!row["feasible"]) {
      EXPECT_EQ(planner, "none");
      EXPECT_THAT(row["error"].get<std::string>(), HasSubstr("needs"));
      continue;
    }
    EXPECT_LE(row["footprint_bytes"], row["budget_bytes"]);
    const double time = row["time_ms"];
    if (last.contains(planner)) {
      EXPECT_LE(time, last[planner]);
    }
    last[planner] = time;
    times[{row["budget_bytes"], planner}] = time;
    EXPECT_GE(row["gap"].get<double>(), -1e-9) << "nothing beats the bound";
    EXPECT_GE(row["overhead"].get<double>() + 1e-9, row["gap"].get<double>());
  }
  for (const auto& [key, time] : times) {
    if (key.second == "tide") {
      EXPECT_LE(time, (times[{key.first, "autoswap"}]));
    }
  }
}

TEST_F(CompareTest, UnknownPlannersAndBudgetsAreErrors) {
  expect_error(tiny("compare", {"--planners", "autoswap,best"}), 2, HasSubstr("'best'"));
  expect_error(tiny("compare", {"--budget", "60%,1%"}), 4, HasSubstr("smallest feasible"));
  expect_error({"compare"}, 2, HasSubstr("give a model"));
}

TEST_F(CompareTest, BoundOfAPlanIsItsGap) {
  const std::string file = folder_.file("plan.json");
  const Json plan = success(tiny("plan", {"--budget", "50%", "-o", file}));
  const Json bound = success({"bound", "--plan", file});
  EXPECT_EQ(bound["budget_bytes"], plan["budget_bytes"]);
  EXPECT_NEAR(bound["plan_overhead"].get<double>(), plan["predicted_overhead"].get<double>(), 1e-9);
  EXPECT_NEAR(bound["gap"].get<double>(),
              bound["plan_overhead"].get<double>() - bound["least_overhead"].get<double>(), 1e-9);
  EXPECT_GE(bound["gap"].get<double>(), 0);
  EXPECT_LT(bound["least_load_without_overhead_bytes"], bound["unlimited_peak_bytes"]);
  const Json same = success(tiny("bound", {"--budget", "50%"}));
  EXPECT_EQ(same["least_overhead_ms"], bound["least_overhead_ms"]);
}

/// The linear program takes seconds.
TEST_F(CompareTest, AnInterruptEndsTheLinearProgram) {
  for (const char* command : {"bound", "compare"}) {
    const testing::Finished f =
        tidepool({command, "resnet50-cifar", "--machine", "gtx1080ti", "--budget", "40%"},
                 [](pid_t process) {
                   testing::wait_until_catches(process, SIGINT);
                   std::this_thread::sleep_for(std::chrono::milliseconds(300));
                   ::kill(process, SIGINT);
                 });
    EXPECT_EQ(f.exit_code, 130) << command << f.out << f.err;
    EXPECT_THAT(f.err, HasSubstr("interrupted"));
  }
}

TEST_F(CompareTest, ATrainingHasTheGapOfItsPlan) {
  const Arguments train{"train",  "tiny-vgg", "--batch",   "16", "--data",   "synthetic",
                        "--link", "500MB",    "--threads", "1",  "--budget", "50%"};
  const Json j = success(train);
  EXPECT_GE(j["least_overhead"].get<double>(), 0);
  EXPECT_GE(j["gap"].get<double>(), -1e-9) << "nothing beats the bound";
  const testing::Finished text = tidepool(train);
  EXPECT_THAT(text.out, HasSubstr("\n  gap        ")) << text.err;

  Arguments unlimited = train;
  unlimited.back() = "100%";
  EXPECT_EQ(success(unlimited)["least_overhead"], 0.0);
  EXPECT_THAT(tidepool(unlimited).out, Not(HasSubstr("gap ")));
}

TEST_F(CompareTest, TrainingInRoundsIsIdenticalInsideABudget) {
  const Arguments train{"train",    "tiny-vgg", "--batch",      "20",     "--sub-batch",
                        "8",        "--data",   "synthetic",    "--link", "500MB",
                        "--budget", "50%",      "--iterations", "3",      "--verify"};
  expect_error(train, 2, AllOf(HasSubstr("batch norm"), HasSubstr("--sub-batch-statistics")));
  Arguments allowed = train;
  allowed.emplace_back("--sub-batch-statistics");
  const Json j = success(allowed);
  EXPECT_EQ(j["identical"], true);
  EXPECT_LE(j["arena_peak_bytes"], j["budget_bytes"]);
}

TEST_F(CompareTest, RandomStrategiesRecomputeAndStayIdentical) {
  const Json j = success({"train", "tiny-resnet", "--batch", "16", "--data", "synthetic", "--link",
                          "500MB", "--budget", "60%", "--iterations", "3", "--planner", "random",
                          "--seed", "4", "--verify"});
  EXPECT_EQ(j["identical"], true);
  EXPECT_GT(j["recomputed_ops"], 0);
  EXPECT_TRUE(j["gap"].is_null()) << "the bound does not cover recomputation";
  EXPECT_TRUE(j["least_overhead"].is_null());
  EXPECT_LE(j["arena_peak_bytes"], j["budget_bytes"]);
}

}  // namespace
}  // namespace tidepool
