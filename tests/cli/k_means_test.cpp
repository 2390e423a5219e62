// K-means, a workload without layers, through the commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using testing::Cli;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

Words k_means_on_preset(const std::string& command, const Words& more) {
  Words words{command, "kmeans", "--machine", "gtx1080ti"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words k_means_here(const std::string& command, const Words& more) {
  Words words{command,  "tiny-kmeans", "--batch", "2000",      "--clusters", "9",
              "--data", "synthetic",   "--link",  "500000000", "--threads",  "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(Cli, KMeansIsPlannedOverAllOfFashionMnist) {
  const Json plan = success(k_means_on_preset("plan", {"--budget", "60%", "--evaluations", "50"}));
  EXPECT_EQ(plan["sub_batch"], 60'000);
  EXPECT_GT(plan["unlimited_peak_bytes"], 60'000 * 784 * 4);
  EXPECT_LE(plan["footprint_bytes"], plan["budget_bytes"]);
  EXPECT_GT(plan["host_bytes"], 0);
  const Json small = success(k_means_on_preset(
      "plan", {"--batch", "500", "--clusters", "3", "--planner", "autoswap", "--budget", "50%"}));
  EXPECT_EQ(small["sub_batch"], 500);
  EXPECT_LT(small["unlimited_peak_bytes"], 600 * 784 * 4);
}

TEST_F(Cli, EveryPlannerPlansKMeansOrSaysWhyNot) {
  const Json rows = success(k_means_on_preset(
      "compare", {"--budget", "75%,40%", "--batch", "6000", "--evaluations", "20"}));
  ASSERT_FALSE(rows["rows"].empty());
  std::size_t planned = 0;
  for (const Json& row : rows["rows"]) {
    SCOPED_TRACE(row.dump());
    const bool made = row.contains("overhead") && row["overhead"].is_number();
    planned += made ? 1 : 0;
    if (!made) {
      EXPECT_FALSE(row.value("error", "").empty());
    }
  }
  EXPECT_GT(planned, rows["rows"].size() / 2);
}

TEST_F(Cli, KMeansRunsInsideItsBudgetAsOutsideIt) {
  for (const char* budget : {"60%", "30%"}) {
    const Json j =
        success(k_means_here("train", {"--budget", budget, "--iterations", "5", "--verify"}));
    EXPECT_EQ(j["identical"], true);
    EXPECT_LE(j["arena_peak_bytes"], j["budget_bytes"]);
    const Json& losses = j["losses"];
    ASSERT_EQ(losses.size(), 5U);
    for (std::size_t i = 1; i < losses.size(); ++i) EXPECT_LT(losses[i], losses[i - 1]);
  }
  EXPECT_FALSE(success(k_means_here("profile", {"--iterations", "2"})).empty());
}

TEST_F(Cli, WhatMeansNothingToKMeansIsAUsageError) {
  const auto refused = [](const Words& more, const char* why) {
    expect_error(k_means_here("train", more), 2, HasSubstr(why));
  };
  refused({"--epochs", "1"}, "--epochs");
  refused({"--learning-rate", "0.1"}, "has none");
  refused({"--weight-decay", "0.1"}, "has none");
  refused({"--optimizer", "adamw"}, "no gradients");
  refused({"--storage", "separate"}, "no activations");
  refused({"--devices", "2"}, "--devices");
  refused({"--sub-batch", "10"}, "no rounds");
  refused({"--sub-batch", "auto"}, "no rounds");
  refused({"--sub-batch-statistics"}, "no rounds");
  for (const char* command : {"plan", "compare"}) {
    expect_error(k_means_on_preset(command, {"--sub-batch", "auto"}), 2, HasSubstr("no rounds"));
  }
  expect_error({"plan", "mlp", "--machine", "gtx1080ti", "--clusters", "4"}, 2,
               HasSubstr("--clusters is for K-means"));
  expect_error(k_means_on_preset("plan", {"--budget", "1%"}), 4, HasSubstr("cannot be met"));
}

}  // namespace
}  // namespace tidepool
