// --sub-batch: stated, chosen, and kept by files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::Cli;
using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

/// SqueezeNet has no batch norm.
Words job(const std::string& command, const Words& more) {
  Words words{command,     "tiny-squeezenet", "--batch", "40",     "--data",
              "synthetic", "--threads",       "1",       "--link", "500000000"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words on_preset(const std::string& command, const Words& more) {
  Words words{command, "tiny-squeezenet", "--batch", "40", "--machine", "gtx1080ti"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(Cli, ASubBatchIsANumberOrAuto) {
  for (const char* text : {"0", "-1", "x", "1.5", ""}) {
    expect_error(on_preset("plan", {"--sub-batch", text}), 2,
                 AllOf(HasSubstr("--sub-batch"), HasSubstr("nor auto")));
  }
  expect_error(on_preset("plan", {"--sub-batch", "41"}), 2, HasSubstr("1 to 40 samples"));
  expect_error(on_preset("bound", {"--sub-batch", "auto"}), 2, HasSubstr("give a number"));
  expect_error(job("profile", {"--sub-batch", "auto"}), 2, HasSubstr("give a number"));
  expect_error({"fit", "mlp", "--machine", "gtx1080ti", "--sub-batch", "auto"}, 2,
               HasSubstr("any batch fits"));
}

TEST_F(Cli, PercentagesAreOfTheWholeBatchWhateverTheRounds) {
  const Json whole = success(on_preset("plan", {"--planner", "autoswap", "--budget", "80%"}));
  EXPECT_EQ(whole["rounds"], 1);
  EXPECT_EQ(whole["sub_batch_chosen"], false);
  const Json stated =
      success(on_preset("plan", {"--planner", "autoswap", "--budget", "80%", "--sub-batch", "8"}));
  EXPECT_EQ(stated["rounds"], 5);
  EXPECT_EQ(stated["sub_batch"], 8);
  EXPECT_EQ(stated["budget_bytes"], whole["budget_bytes"]);
  EXPECT_EQ(stated["unlimited_peak_bytes"], whole["unlimited_peak_bytes"]);
  EXPECT_EQ(success(on_preset("bound", {"--budget", "80%", "--sub-batch", "8"}))["budget_bytes"],
            whole["budget_bytes"]);
}

/// Rounds and algorithms change the last bits: no stopwatch may choose them unasked.
TEST_F(Cli, NoPlannerChoosesRoundsOrAlgorithmsUnlessItIsAskedTo) {
  for (const char* planner : {"auto", "modnn", "vdnn-plus", "vdnn-dyn", "superneurons"}) {
    for (const char* budget : {"45%", "70%", "200%"}) {
      SCOPED_TRACE(std::string(planner) + " in " + budget);
      const Json made =
          success(on_preset("plan", {"--planner", planner, "--budget", budget, "--explain"}));
      EXPECT_EQ(made["rounds"], 1);
      EXPECT_EQ(made["sub_batch_chosen"], false);
      EXPECT_EQ(made["other_algorithms"]["ops"], 0);
    }
  }
}

TEST_F(Cli, AutoTakesTheLargestRoundsWithAPlan) {
  const Words planning{"--planner", "none", "--budget", "45%", "--sub-batch"};
  const auto with = [&](const std::string& size) {
    Words words = planning;
    words.push_back(size);
    return on_preset("plan", words);
  };
  const Json chosen = success(with("auto"));
  EXPECT_EQ(chosen["sub_batch_chosen"], true);
  const std::int64_t size = chosen["sub_batch"];
  EXPECT_LT(size, 40);
  EXPECT_GT(chosen["whole_batch_unlimited_ms"], 0);
  EXPECT_LE(chosen["footprint_bytes"], chosen["budget_bytes"]);
  const Json stated = success(with(std::to_string(size)));
  EXPECT_EQ(stated["predicted_ms"], chosen["predicted_ms"]);
  EXPECT_EQ(chosen["unlimited_ms"], chosen["whole_batch_unlimited_ms"]) << "the fastest allowed";
  EXPECT_GT(stated["unlimited_ms"], chosen["unlimited_ms"]) << "of the rounds that are stated";
  expect_error(with(std::to_string(2 * size)), 4, HasSubstr("without swapping"));
  EXPECT_THAT(tidepool(with("auto")).out, HasSubstr("chosen by the planner; the whole batch"));
}

TEST_F(Cli, ABudgetThatNoRoundsMeetNamesTheBoundAndTheOp) {
  const Json error = expect_error(
      on_preset("plan", {"--planner", "autoswap", "--budget", "1KiB", "--sub-batch", "auto"}), 4,
      AllOf(HasSubstr("in rounds of any size"), HasSubstr("op '")));
  const std::string enough = error["smallest_feasible_bytes"].dump();
  const Json planned = success(
      on_preset("plan", {"--planner", "autoswap", "--budget", enough, "--sub-batch", "auto"}));
  EXPECT_LT(planned["sub_batch"], 40);
}

TEST_F(Cli, SubBatchAutoIsRecommendedOnlyWhereItWouldDo) {
  const auto error = [&](const Words& words) { return tidepool(words).err; };
  const Words small{"--budget", "25%", "--planner", "none"};
  const auto with = [&](Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  EXPECT_THAT(error(on_preset("plan", small)), HasSubstr("(or --sub-batch auto)"));
  EXPECT_THAT(error(on_preset("plan", with(small, {"--devices", "2"}))),
              HasSubstr("(or --sub-batch auto)"));
  EXPECT_THAT(error(on_preset("bound", {"--budget", "25%"})),
              AllOf(HasSubstr("fit with --sub-batch"), Not(HasSubstr("auto"))));
  const Words norm{"plan",     "tiny-vgg", "--batch",   "64",   "--machine",   "gtx1080ti",
                   "--budget", "20%",      "--planner", "none", "--sub-batch", "auto"};
  EXPECT_THAT(error(norm), AllOf(HasSubstr("--sub-batch-statistics"), Not(HasSubstr("auto"))));
  for (const char* command : {"bound", "fit", "profile", "analyse"}) {
    EXPECT_THAT(tidepool({command, "--help"}).out, Not(HasSubstr("auto: the planner")));
  }
}

TEST_F(Cli, ABatchOfTooManyElementsIsPlannedInRounds) {
  for (const char* command : {"plan", "compare"}) {
    Words words{command,    "gpt2-small", "--machine",   "k40",
                "--budget", "60%",        "--sub-batch", "auto"};
    const bool compares = std::string(command) == "compare";
    words.insert(words.end(), {compares ? "--planners" : "--planner", "modnn"});
    const Json made = success(words);
    const Json& plan = compares ? made["rows"][0] : made;
    EXPECT_LT(plan["sub_batch"], 100);
  }
}

/// The whole batch runs what a planner may choose, whether this one did so or not.
TEST_F(Cli, TheWholeBatchAtOnceRunsTheAlgorithmsThatThePlannerMayChoose) {
  const auto with = [&](const char* command, const char* algorithms) {
    return success(on_preset(command, {"--planner", "modnn", "--budget", "45%", "--sub-batch",
                                       "auto", "--algorithms", algorithms}));
  };
  const Json chosen = with("plan", "auto");
  const Json least = with("plan", "least-workspace");
  EXPECT_LT(chosen["whole_batch_unlimited_ms"], least["whole_batch_unlimited_ms"]);
  const Json fastest = with("plan", "fastest");
  EXPECT_EQ(chosen["whole_batch_unlimited_ms"], fastest["whole_batch_unlimited_ms"]);
  const Json compared =
      success(on_preset("compare", {"--planners", "modnn", "--budget", "45%", "--sub-batch", "auto",
                                    "--algorithms", "auto"}));
  EXPECT_EQ(compared["rows"][0]["whole_batch_unlimited_ms"], chosen["whole_batch_unlimited_ms"]);
}

TEST_F(Cli, AComparisonNamesTheSmallestBudgetOfItsRows) {
  const auto f =
      tidepool(on_preset("compare", {"--planners", "none", "--budget", "1KiB,45%", "--json"}));
  EXPECT_EQ(f.exit_code, 4);
  const Json out = Json::parse(f.out);
  EXPECT_EQ(out["smallest_feasible_bytes"], out["rows"][1]["smallest_feasible_bytes"]);
}

TEST_F(Cli, AComparisonInChosenRoundsSaysThem) {
  const Words comparing{"--planners", "none,autoswap", "--budget", "45%", "--sub-batch", "auto"};
  const Json rows = success(on_preset("compare", comparing))["rows"];
  ASSERT_EQ(rows.size(), 2U);
  for (const Json& row : rows) {
    EXPECT_EQ(row["sub_batch_chosen"], true) << row;
    EXPECT_GE(row["rounds"], 1);
    EXPECT_EQ(row["least_overhead"].is_null(), row["rounds"] > 1) << "of the whole batch";
  }
  EXPECT_THAT(tidepool(on_preset("compare", comparing)).out, HasSubstr("chose rounds of"));
}

TEST_F(Cli, BatchNormInRoundsSaysThatItChangesTraining) {
  Words words{"plan",     "tiny-vgg", "--batch",   "16",       "--machine",   "gtx1080ti",
              "--budget", "70%",      "--planner", "autoswap", "--sub-batch", "auto"};
  EXPECT_EQ(success(words)["rounds"], 1);
  EXPECT_THAT(tidepool(words).out, HasSubstr("the whole batch: batch norm"));
  words.back() = "8";
  expect_error(words, 2, HasSubstr("--sub-batch-statistics"));
  words.emplace_back("--sub-batch-statistics");
  EXPECT_EQ(success(words)["round_statistics"], true);
  EXPECT_THAT(tidepool(words).out, HasSubstr("which changes training"));
}

TEST_F(Cli, APlanInChosenRoundsIsSavedAndTrainedWith) {
  const std::string path = folder_.file("plan.json");
  const Json made = success(
      job("plan", {"--planner", "none", "--budget", "45%", "--sub-batch", "auto", "-o", path}));
  EXPECT_GT(made["rounds"], 1);
  const Json trained = success(job("train", {"--plan", path, "--iterations", "2", "--verify"}));
  EXPECT_EQ(trained["sub_batch"], made["sub_batch"]);
  EXPECT_EQ(trained["identical"], true);
  EXPECT_EQ(trained["profile"]["from"], "plan");
  EXPECT_LE(trained["arena_peak_bytes"], made["footprint_bytes"]);
  expect_error(job("train", {"--plan", path, "--sub-batch", "1"}), 3,
               AllOf(HasSubstr("in rounds of"), HasSubstr("another program"),
                     HasSubstr("what differs: sub-batch")));
  expect_error(job("train", {"--plan", path, "--budget", "8KiB"}), 4, HasSubstr("cannot be met"));
  EXPECT_EQ(success({"check", path})["budget_bytes"], made["budget_bytes"]);
}

TEST_F(Cli, FitInRoundsIsLimitedByWhatARoundNeeds) {
  const Words fit{
      "fit",  "tiny-squeezenet", "--machine", "gtx1080ti",    "--planner", "none", "--budget",
      "1MiB", "--most-batch",    "512",       "--resolution", "10%"};
  Words in_rounds = fit;
  in_rounds.insert(in_rounds.end(), {"--sub-batch", "8"});
  const Json whole = success(fit);
  const Json rounds = success(in_rounds);
  EXPECT_LT(whole["largest"]["batch"], 512);
  EXPECT_EQ(rounds["largest"]["batch"], 512);
}

/// Also below what any planner needs, where the command measures nothing.
TEST_F(Cli, ThePlannerThatKeepsEverythingNamesWhatItNeedsAtOnce) {
  const auto plan = [](const std::string& budget) {
    return Words{"plan",        "tiny-vgg-plain",
                 "--batch",     "20",
                 "--data",      "synthetic",
                 "--sub-batch", "auto",
                 "--planner",   "none",
                 "--link",      "500000000",
                 "--threads",   "1",
                 "--no-cache",  "--budget",
                 budget};
  };
  const Json error = expect_error(plan("5000"), 4, HasSubstr("enough for planner 'none'"));
  const std::int64_t named = error["smallest_feasible_bytes"];
  EXPECT_EQ(success(plan(std::to_string(named)))["planner"], "none");
}

}  // namespace
}  // namespace tidepool
