// Profiling inside a budget, as `profile`, `plan` and `train --epochs` do it.
#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::Finished;
using ::testing::HasSubstr;

using Arguments = std::vector<std::string>;

class ProfileTest : public testing::Cli {
 protected:
  static Arguments job(const std::string& command, Arguments more = {}) {
    Arguments a{command,     "tiny-vgg", "--batch", "500",       "--data",
                "synthetic", "--link",   "500MB",   "--threads", "1"};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
  /// A profile has a time for every algorithm.
  static void expect_times(const Json& profile) {
    for (const Json& op : profile["program"]["ops"]) {
      if (op["place"] != "device") continue;
      for (const Json& a : op["algorithms"]) EXPECT_GT(a["time_ns"], 0) << op["name"] << a["name"];
    }
  }
};

TEST_F(ProfileTest, WithoutABudgetEverythingIsKept) {
  const Json j = success(job("profile"));
  EXPECT_EQ(j["profile"]["reactive"], false);
  EXPECT_EQ(j["profile"]["unmeasured_algorithms"], 0);
  EXPECT_GT(j["profile"]["arena_peak_bytes"], 0);
  expect_times(j);
}

TEST_F(ProfileTest, InsideABudgetNoMoreIsUsedDownToTheSmallest) {
  const Json error = expect_error(job("profile", {"--budget", "1%"}), 4, HasSubstr("op '"));
  const std::int64_t smallest = error["smallest_feasible_bytes"];
  for (const std::int64_t budget : {smallest, smallest + smallest / 3, 2 * smallest}) {
    const Json j = success(job("profile", {"--no-cache", "--budget", std::to_string(budget)}));
    EXPECT_EQ(j["profile"]["reactive"], true);
    EXPECT_LE(j["profile"]["arena_peak_bytes"], budget);
    EXPECT_EQ(j["profile"]["unmeasured_algorithms"] > 0, convolutions_have_a_choice(j["program"]))
        << "Winograd needs more";
    expect_times(j);
  }
}

/// Where planners choose rounds it was passed over without a word.
TEST_F(ProfileTest, OfAnotherBatchIsRefusedThoughThePlannerChoosesRounds) {
  const std::string path = folder_.file("p.json");
  const Arguments device{"--data", "synthetic", "--link", "500MB", "--threads", "1"};
  const auto with = [&](Arguments a) {
    a.insert(a.end(), device.begin(), device.end());
    return a;
  };
  success(with({"profile", "mlp", "--batch", "8", "-o", path}));
  expect_error(with({"train", "mlp", "--batch", "4", "--profile", path, "--budget", "20MiB",
                     "--iterations", "1"}),
               3, HasSubstr(path));
}

TEST_F(ProfileTest, AnAlgorithmThatDoesNotFitIsNeverTheFastest) {
  const std::string path = folder_.file("p.json");
  success(job("profile", {"--budget", "40%", "-o", path}));
  const Json planned = success({"plan", "--threads", "1", "--profile", path, "--budget", "40%",
                                "--algorithms", "fastest", "-o", folder_.file("plan.json")});
  const Json file = Json::parse(testing::content_of(folder_.file("plan.json")));
  for (const Json& x : file["plan"]["steady"]["instructions"]) {
    if (x["kind"] != "op") continue;
    EXPECT_EQ(x["algorithm"], 0);
  }
}

TEST_F(ProfileTest, TheHostBudgetHoldsWhileProfilingAndTheOneItNamesIsEnough) {
  for (const Arguments& command :
       {job("profile"), job("plan"), job("train", {"--epochs", "1", "--no-evaluate"})}) {
    Arguments a = command;
    a.insert(a.end(), {"--no-cache", "--budget", "40%", "--host-budget", "1MiB"});
    const Json error = expect_error(
        a, 4, AllOf(HasSubstr("--host-budget"), HasSubstr("profiling"), HasSubstr("are enough")));
    ASSERT_TRUE(error.contains("smallest_feasible_bytes"));
    a.back() = error["smallest_feasible_bytes"].dump();
    success(a);
  }
}

TEST_F(ProfileTest, AFakeOneTakesTheLeastMemoryOrItsBudgetAndSaysWhatItIs) {
  const Json j = success(job("profile", {"--fake", "--no-cache"}));
  EXPECT_EQ(j["profile"]["fake"], true);
  EXPECT_EQ(j["fake"], true);
  EXPECT_EQ(j["profile"]["unmeasured_algorithms"], 0) << "the arena is for all of them";
  expect_times(j);
  const Json kept = success(job("profile", {"--no-cache"}));
  EXPECT_EQ(kept["profile"]["fake"], false);
  EXPECT_FALSE(kept.contains("fake"));
  EXPECT_LT(j["profile"]["arena_peak_bytes"], kept["profile"]["arena_peak_bytes"]);
  // A plan made of it says so wherever its times are shown.
  const std::string file = folder_.file("fake.json"), plan = folder_.file("plan.json");
  success(job("profile", {"--fake", "--no-cache", "-o", file}));
  success({"plan", "--threads", "1", "--profile", file, "--budget", "60%", "--planner", "autoswap",
           "-o", plan});
  EXPECT_EQ(success({"info", plan})["fake"], true);
  EXPECT_EQ(success({"simulate", plan})["fake"], true);
  EXPECT_THAT(tidepool({"simulate", plan}).out, HasSubstr("fake profiling"));
  EXPECT_EQ(success(job("train", {"--plan", plan, "--iterations", "1"}))["profile"]["fake"], true);

  const Json inside = success(job("profile", {"--fake", "--no-cache", "--budget", "40%"}));
  EXPECT_EQ(inside["profile"]["fake"], true);
  EXPECT_EQ(inside["profile"]["unmeasured_algorithms"] > 0,
            convolutions_have_a_choice(inside["program"]))
      << "Winograd needs more";
  expect_times(inside);
  EXPECT_THAT(tidepool(job("profile", {"--fake"})).out,
              AllOf(HasSubstr("FAKE"), HasSubstr("values are not what they should be")));
  expect_error(job("profile", {"--fake", "--no-cache", "--budget", "40%", "--host-budget", "1MiB"}),
               4, AllOf(HasSubstr("--host-budget"), HasSubstr("fake"), HasSubstr("are enough")));
}

TEST_F(ProfileTest, TheCacheGivesNoFakeProfileForARealOne) {
  success(job("profile", {"--fake"}));
  EXPECT_EQ(success(job("profile", {"--fake"}))["profile"]["from"], "cache");
  const Json real = success(job("profile"));
  EXPECT_EQ(real["profile"]["from"], "measured");
  EXPECT_EQ(real["profile"]["fake"], false);
}

TEST_F(ProfileTest, WhoPlansOrTrainsWithAFakeOneIsTold) {
  const std::string path = folder_.file("fake.json");
  success(job("profile", {"--fake", "-o", path}));
  EXPECT_EQ(success({"info", path})["fake"], true);
  EXPECT_THAT(tidepool({"info", path}).out, HasSubstr("made-up values"));
  const Arguments plan{"plan",      "--threads", "1",
                       "--profile", path,        "--budget",
                       "60%",       "-o",        folder_.file("plan.json")};
  EXPECT_EQ(success(plan)["profile"]["fake"], true);
  EXPECT_THAT(tidepool(plan).out, HasSubstr("fake profiling"));
  const Arguments train =
      job("train", {"--profile", path, "--budget", "60%", "--iterations", "2", "--verify"});
  const Json trained = success(train);
  EXPECT_EQ(trained["profile"]["fake"], true);
  EXPECT_EQ(trained["identical"], true) << "only times come of the profile";
  EXPECT_THAT(tidepool(train).out, HasSubstr("fake profiling"));
}

TEST_F(ProfileTest, AHostBudgetBelowWhatEveryTensorNeedsMayStillDo) {
  const Json j =
      success(job("profile", {"--no-cache", "--budget", "40%", "--host-budget", "16MiB"}));
  EXPECT_EQ(j["profile"]["reactive"], true);
  expect_times(j);
}

TEST_F(ProfileTest, EpochsAndPlansProfileInsideTheirBudgetToo) {
  for (const Arguments& command : {job("plan"), job("train", {"--epochs", "1", "--no-evaluate"})}) {
    Arguments a = command;
    a.insert(a.end(), {"--budget", "45%", "--reprofile"});
    const Json j = success(a);
    EXPECT_EQ(j["profile"]["reactive"], true);
    EXPECT_LE(j["profile"]["arena_peak_bytes"], j["budget_bytes"]);
  }
  const auto trained = [&](const char* budget) {  // with workspaces not everything fits
    return success(
        job("train", {"--iterations", "4", "--budget", budget, "--algorithms", "least-workspace"}));
  };
  const Json inside = trained("45%");
  const Json kept = trained("150%");
  EXPECT_EQ(kept["profile"]["reactive"], false);
  EXPECT_EQ(kept["state_crc32"], inside["state_crc32"]);
}

TEST_F(ProfileTest, AProfileServesOnlyThoseWhoAskForItsKind) {
  const auto profile = [&](const char* budget) {
    return success(job("plan", {"--budget", budget, "--algorithms", "least-workspace"}))["profile"];
  };
  const auto from = [&](const char* budget) { return profile(budget)["from"]; };
  EXPECT_EQ(from("45%"), "measured");
  EXPECT_EQ(from("50%"), "cache");
  EXPECT_EQ(from("150%"), "measured") << "here everything fits";
  EXPECT_EQ(profile("45%")["reactive"], true)
      << "a profile made without a budget does not take the place of one inside";
  EXPECT_EQ(from("150%"), "cache") << "both are kept";
}

TEST_F(ProfileTest, AProfileWithAlgorithmsThatDidNotFitServesItsOwnBudgetOnly) {
  const auto profile = [&](const std::string& budget) {
    return success(job("profile", {"--budget", budget}));
  };
  const Json first = profile("45%");
  EXPECT_EQ(first["profile"]["from"], "measured");
  EXPECT_EQ(profile("45%")["profile"]["from"], "cache");
  const bool some_did_not_fit = convolutions_have_a_choice(first["program"]);
  EXPECT_EQ(profile("50%")["profile"]["from"], some_did_not_fit ? "measured" : "cache");
}

TEST_F(ProfileTest, TheTextSaysHowItWasMeasured) {
  const Finished inside = tidepool(job("profile", {"--budget", "45%"}));
  EXPECT_THAT(inside.out, HasSubstr("swapping on demand"));
  const Json program = success(job("profile"))["program"];
  EXPECT_EQ(inside.out.find("need more") != std::string::npos, convolutions_have_a_choice(program));
  const Finished kept = tidepool(job("profile"));
  EXPECT_THAT(kept.out, HasSubstr("everything kept"));
}

}  // namespace
}  // namespace tidepool
