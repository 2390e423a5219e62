// Profiles on which an earlier version went wrong, in tests/regress.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using testing::Cli;
using Words = std::vector<std::string>;

Words planning(const std::string& file, const Words& more) {
  Words words{"plan", "--profile", TIDEPOOL_SOURCE_FOLDER "/tests/regress/" + file, "--foreign",
              "--no-cache"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The search for plans that write less went on from a streaming plan, with its algorithms.
TEST_F(Cli, TideKeepsTheStatedAlgorithmsWhereOnlyAStreamingPlanIsKnown) {
  success(planning("tide_decided_algorithms.profile.json",
                   {"--budget", "33792", "--planner", "tide", "--evaluations", "300",
                    "--algorithms", "fastest"}));
}

/// An algorithm of 0 ns beside one that takes time was no choice for the bound, and the fastest for
/// planners.
TEST_F(Cli, AnAlgorithmThatWasNotMeasuredIsNoChoiceForAnyone) {
  const auto with = [](const char* file, const char* budget, const char* planner,
                       const char* algorithms) {
    return planning(file, {"--budget", budget, "--planner", planner, "--algorithms", algorithms,
                           "--evaluations", "50"});
  };
  for (const char* algorithms : {"least-workspace", "heuristic", "fastest", "auto"}) {
    SCOPED_TRACE(algorithms);
    for (const char* planner : {"auto", "tide", "modnn", "vdnn-dyn", "superneurons"}) {
      SCOPED_TRACE(planner);
      success(with("zero_time_algorithm.profile.json", "200%", planner, algorithms));
      success(with("zero_time_of_three.profile.json", "200%", planner, algorithms));
      success(with("zero_time_algorithm_big.profile.json", "152576", planner, algorithms));
    }
    success(with("zero_time_of_three.profile.json", "200%", "none", algorithms));
    success(with("zero_time_algorithm.profile.json", "200%", "none", algorithms));
  }
}

/// A host op updates a tensor that a copy in, made for a recomputation, still reads.
TEST_F(Cli, AHostOpWaitsForTheCopiesThatRecomputationsRead) {
  for (const char* planner : {"auto", "capuchin", "memonger", "random"}) {
    SCOPED_TRACE(planner);
    success(planning("host_update_auto_4096.profile.json",
                     {"--budget", "1056768", "--evaluations", "50", "--planner", planner}));
  }
  success(planning("host_update_read_4096.profile.json",
                   {"--budget", "69632", "--evaluations", "50", "--planner", "random"}));
}

}  // namespace
}  // namespace tidepool
