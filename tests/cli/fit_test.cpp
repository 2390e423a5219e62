// fit: the largest batch that fits, and the fastest.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "support/cli_fixture.h"
#include "support/terminal.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Arguments = std::vector<std::string>;

class FitTest : public testing::Cli {
 protected:
  static Arguments tiny(Arguments more) {
    Arguments a{"fit", "tiny-vgg", "--machine", "gtx1080ti"};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
};

/// One more sample has no plan, and what was found has one.
TEST_F(FitTest, TheLargestBatchHasAPlanAndTheNextHasNone) {
  for (const char* planner : {"none", "autoswap"}) {
    const Json j = success(tiny({"--budget", "2MiB", "--planner", planner}));
    const std::int64_t batch = j["largest"]["batch"];
    const Arguments plan{"plan",     "tiny-vgg", "--machine", "gtx1080ti",
                         "--budget", "2MiB",     "--planner", planner};
    Arguments with = plan;
    with.insert(with.end(), {"--batch", std::to_string(batch)});
    const Json planned = success(with);
    EXPECT_FALSE(planned["streaming"].get<bool>());
    EXPECT_LE(j["largest"]["footprint_bytes"], 2 << 20);
    EXPECT_EQ(j["complete"], true);
    bool next_fails = false;
    for (const Json& trial : j["trials"]) {
      if (trial["batch"] == batch + 1) next_fails = !trial["fits"];
    }
    EXPECT_TRUE(next_fails || batch == j["largest_streaming_batch"]);
    EXPECT_GE(j["fastest"]["samples_per_s"], j["largest"]["samples_per_s"]);
    EXPECT_GE(j["largest_streaming_batch"].get<std::int64_t>(), batch);
  }
}

TEST_F(FitTest, WithAHostBudgetRowsSayWhatTheyTakeOfIt) {
  const Arguments asked =
      tiny({"--budget", "2MiB", "--host-budget", "1MiB", "--planner", "autoswap"});
  const Json j = success(asked);
  EXPECT_EQ(j["host_budget_bytes"], 1 << 20);
  for (const Json& trial : j["trials"]) {
    if (trial["fits"]) {
      EXPECT_LE(trial["host_bytes"], 1 << 20);
    }
  }
  EXPECT_GT(j["largest"]["host_bytes"], 0);
  EXPECT_LE(j["largest_kept_batch"], j["largest"]["batch"]);
  EXPECT_LT(j["largest_streaming_batch"], j["largest_streaming_batch_of_any_host"]);
  EXPECT_THAT(tidepool(asked).out, AllOf(HasSubstr("the largest that fits without a plan"),
                                         HasSubstr(", host "), Not(HasSubstr("can train at all"))));
  const Json kept = success(tiny({"--budget", "2MiB", "--planner", "none"}));
  EXPECT_LE(kept["largest_kept_batch"], kept["largest"]["batch"]);
  EXPECT_GE(kept["largest_kept_batch"].get<double>(),
            0.95 * kept["largest"]["batch"].get<double>());
}

TEST_F(FitTest, WithoutABudgetItIsTheMemoryOfTheMachine) {
  const Json j = success(tiny({"--planner", "none", "--most-batch", "64"}));
  EXPECT_EQ(j["largest"]["batch"], 64);
  EXPECT_GT(j["budget_bytes"].get<std::int64_t>(), std::int64_t{8} << 30);
  const testing::Finished text = tidepool(tiny({"--planner", "none", "--most-batch", "64"}));
  EXPECT_THAT(text.out, AllOf(HasSubstr("largest batch"), HasSubstr("samples/s")));
}

TEST_F(FitTest, WhatCannotBeIsSaid) {
  expect_error(tiny({"--budget", "60%"}), 2, HasSubstr("another for every batch"));
  expect_error(tiny({"--budget", "2MiB", "--planner", "best"}), 2, HasSubstr("'best'"));
  expect_error(tiny({"--budget", "10B"}), 4, HasSubstr("not even batch 1"));
  expect_error(tiny({"--budget", "2MiB", "--resolution", "2"}), 2, HasSubstr("percentage"));
  expect_error({"fit", "tiny-vgg", "--data", "synthetic"}, 2, HasSubstr("--budget"));
  expect_error({"fit", "tiny-vgh", "--machine", "gtx1080ti"}, 2, HasSubstr("tiny-vgh"));
  expect_error(tiny({"--budget", "2MiB", "--batch", "8"}), 2, HasSubstr("--batch"));
}

TEST_F(FitTest, AnInterruptKeepsTheBatchesThatWereFound) {
  const testing::Finished f = testing::interrupted_in_terminal(
      {TIDEPOOL_BINARY, "fit", "vgg16", "--machine", "gtx1080ti", "--budget", "400MiB", "--planner",
       "tide", "--time-limit", "60s", "--json"},
      "(16 fits)");
  EXPECT_EQ(f.exit_code, 130) << f.out;
  const Json j = Json::parse(testing::object_in(f.out), nullptr, false);
  ASSERT_TRUE(j.is_object()) << f.out;
  EXPECT_EQ(j["interrupted"], true);
  EXPECT_EQ(j["complete"], false);
  EXPECT_GE(j["largest"]["batch"], 16);
}

/// It ended with "nothing was saved", or an error without the trials.
TEST_F(FitTest, AnInterruptWhileABatchIsProfiledKeepsTheTrialsToo) {
  // Of two profiles in the cache one is of a batch that has been tried.
  const auto profiles = [&] {
    std::error_code none;
    const std::filesystem::directory_iterator files(folder_.path() / "cache/tidepool", none);
    return std::count_if(begin(files), end(files), [](const auto& file) {
      return file.path().filename().string().starts_with("profile-");
    });
  };
  for (const int known : {0, 2}) {
    const testing::Finished f =
        tidepool({"fit", "vgg16", "--data", "synthetic", "--link", "500MB", "--threads", "1",
                  "--budget", "3GiB", "--planner", "none", "--json"},
                 [&](pid_t process) {
                   testing::wait_until_catches(process, SIGINT);
                   testing::wait_until(process, [&] { return profiles() >= known; });
                   ::kill(process, SIGINT);
                 });
    EXPECT_EQ(f.exit_code, 130) << f.err;
    const Json j = Json::parse(f.out, nullptr, false);
    ASSERT_TRUE(j.is_object()) << f.out;
    EXPECT_EQ(j["interrupted"], true);
    EXPECT_EQ(j["complete"], false);
    ASSERT_TRUE(j["trials"].is_array());
    if (known > 0) {
      EXPECT_GE(j["trials"].size(), 1U);
      EXPECT_FALSE(j["largest"].is_null());
    }
  }
}

TEST_F(FitTest, WhatLimitsTheBatchIsNamed) {
  const Arguments capped = tiny({"--budget", "2MiB", "--planner", "autoswap", "--most-batch", "4"});
  EXPECT_EQ(success(capped)["limit"], "most_batch");
  EXPECT_THAT(tidepool(capped).out, HasSubstr("is --most-batch: no larger batch was tried"));
  EXPECT_EQ(success(tiny({"--budget", "1MiB", "--planner", "none"}))["limit"], "budget");
  const Arguments huge{"fit",    "vgg16",     "--machine", "gtx1080ti",    "--budget",
                       "100TiB", "--planner", "none",      "--resolution", "50%"};
  const Json j = success(huge);
  EXPECT_EQ(j["limit"], "program");
  EXPECT_THAT(j["limit_reason"].get<std::string>(),
              AllOf(HasSubstr("elements"), HasSubstr("--sub-batch")));
  EXPECT_THAT(tidepool(huge).out, Not(HasSubstr("this budget can train at all")));
}

TEST_F(FitTest, ReprofilingMeasuresTheLinkOnce) {
  const Json j = success({"fit", "tiny-vgg", "--data", "synthetic", "--threads", "1", "--budget",
                          "64MiB", "--planner", "none", "--most-batch", "8", "--reprofile"});
  EXPECT_GT(j["link_bytes_per_second"].get<double>(), 0);
  EXPECT_GT(j["profiles_measured"], 1);
}

/// Every phase had a fraction of its own.
TEST_F(FitTest, ProgressDoesNotRunBackwards) {
  const std::string out =
      testing::run_in_terminal({TIDEPOOL_BINARY, "fit", "tiny-vgg", "--data", "synthetic", "--link",
                                "500MB", "--threads", "1", "--budget", "1MiB", "--planner", "none",
                                "--most-batch", "64"})
          .out;
  int last = 0;
  int seen = 0;
  const std::string before = "\u00b7 ";  // the end of the bar
  for (std::size_t at = out.find(before); at != std::string::npos; at = out.find(before, at + 1)) {
    const int percent = std::atoi(out.c_str() + at + before.size());
    EXPECT_GE(percent, last);
    last = percent;
    ++seen;
  }
  EXPECT_GT(seen, 10);
  EXPECT_THAT(out, HasSubstr("profiling tiny-vgg"));
}

/// Profiles cost time: only doubled batches and the results are measured.
TEST_F(FitTest, OnADeviceMostBatchesAreEstimated) {
  const Json j = success({"fit", "tiny-vgg", "--data", "synthetic", "--link", "500MB", "--threads",
                          "1", "--budget", "700KiB", "--planner", "autoswap"});
  const std::size_t trials = j["trials"].size();
  EXPECT_LT(j["profiles_measured"].get<std::size_t>(), trials);
  EXPECT_EQ(j["largest"]["estimated"], false);
  EXPECT_EQ(j["fastest"]["estimated"], false);
  EXPECT_LE(j["largest"]["footprint_bytes"], 700 << 10);
}

}  // namespace
}  // namespace tidepool
