// Profiles on which an earlier version went wrong, in tests/regress.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::Cli;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::Not;
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
    // Of its deterministic algorithms one has no time, which counts as 0; another has.
    success(with("zero_beside_another_kind.profile.json", "100GB", "none", algorithms));
    success(with("zero_beside_another_kind.profile.json", "100GB", "auto", algorithms));
    success(with("zero_of_two_kinds.profile.json", "100GB", "auto", algorithms));
    success(with("zero_time_of_three.profile.json", "200%", "none", algorithms));
    success(with("zero_time_algorithm.profile.json", "200%", "none", algorithms));
  }
}

/// Both directions of the link share a bus: 132 ms were predicted, 162 simulated.
TEST_F(Cli, APlanOnASharedBusTakesWhatIsPredicted) {
  testing::TemporaryFolder folder;
  const std::string plan = folder.file("p.json");
  for (const char* planner : {"random", "autoswap", "auto", "modnn", "tide"}) {
    SCOPED_TRACE(planner);
    Words words = planning("bus_of_one_device.profile.json",
                           {"--budget", "290817", "--planner", planner, "--seed", "939",
                            "--evaluations", "300", "-o", plan});
    const double predicted = success(words)["predicted_ms"];
    const double simulated = success({"simulate", plan})["iteration_ms"];
    EXPECT_NEAR(simulated, predicted, 0.001 * predicted);
  }
}

/// A host op that changes what persists cannot be planned for: one answer, before any planner.
TEST_F(Cli, AProgramThatCannotBePlannedForIsRefusedWhateverIsAsked) {
  for (const char* file : {"host_writes_persistent.profile.json", "false_proof.profile.json"}) {
    for (const char* budget : {"100%", "1KiB", "1GiB"}) {
      SCOPED_TRACE(budget);
      for (const char* planner : {"auto", "none", "modnn"}) {
        expect_error(planning(file, {"--budget", budget, "--planner", planner}), 3,
                     HasSubstr("host ops on persistent tensors are not supported"));
      }
      for (const char* command : {"compare", "bound"}) {
        Words words = planning(file, {"--budget", budget});
        words.front() = command;
        expect_error(words, 3, HasSubstr("host ops on persistent tensors are not supported"));
      }
    }
  }
}

/// Where device ops take no time an overhead of 0 % and "no plan is faster" were printed.
TEST_F(Cli, NothingIsProvedFromAMissingTime) {
  const Finished f = tidepool(planning("zero_time_ops.profile.json", {"--budget", "2000000B"}));
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.out, AllOf(HasSubstr("unknown"), Not(HasSubstr("no plan"))));
}

/// Below what any planner needs, 50.2 MiB were named for one that needs 350.4.
TEST_F(Cli, TheSmallestBudgetThatIsNamedIsEnoughForThatPlanner) {
  const Words none{"vgg16", "--machine", "gtx1080ti", "--no-cache", "--planner", "none"};
  const auto planned = [&](const std::string& budget) {
    Words words{"plan", "--budget", budget};
    words.insert(words.end(), none.begin(), none.end());
    return words;
  };
  for (const char* budget : {"10%", "50%"}) {
    const Json error = expect_error(planned(budget), 4, HasSubstr("none"));
    success(planned(error["smallest_feasible_bytes"].dump()));
    const Finished f = tidepool({"compare", "vgg16", "--machine", "gtx1080ti", "--budget", budget,
                                 "--planners", "none", "--json", "--no-cache"});
    EXPECT_EQ(f.exit_code, 4);
    const Json row = Json::parse(f.out)["rows"][0];
    success(planned(row["smallest_feasible_bytes"].dump()));
  }
  const Words training{"train",     "mlp",       "--data",  "synthetic",    "--link",
                       "1GB",       "--planner", "none",    "--iterations", "1",
                       "--threads", "1",         "--budget"};
  Words words = training;
  words.emplace_back("1%");
  const Json error = expect_error(words, 4, HasSubstr("are enough for planner 'none'"));
  words.back() = error["smallest_feasible_bytes"].dump();
  success(words);
}

/// The text named 103,872, the field 106,688, and 106,687 was enough: one figure, from below what
/// any planner needs and from above it, and one alignment less is refused.
TEST_F(Cli, TheSmallestBudgetOfNoneIsOneFigure) {
  const auto planned = [](const std::string& budget) {
    return planning("smallest_of_none.profile.json", {"--budget", budget, "--planner", "none"});
  };
  const Json below = expect_error(planned("103871"), 4, HasSubstr("103872 B"));
  const auto least = below["smallest_feasible_bytes"].get<Bytes>();
  EXPECT_THAT(below["error"].get<std::string>(), HasSubstr(std::to_string(least) + " B"));
  const Json same = expect_error(planned("103872"), 4, HasSubstr("none"));
  EXPECT_EQ(same["smallest_feasible_bytes"], least);
  success(planned(std::to_string(least)));
  const Json less = expect_error(planned(std::to_string(least - 64)), 4, HasSubstr("none"));
  EXPECT_EQ(less["smallest_feasible_bytes"], least);
}

/// 350.4 MiB were named in a table with a plan in 350.2; `info` rounded to what is refused.
TEST_F(Cli, NoBudgetBelowTheSmallestThatIsNamedHasAPlan) {
  const Finished f = tidepool({"compare", "vgg16", "--machine", "gtx1080ti", "--sweep",
                               "20%..100%:20%", "--planners", "none", "--json", "--no-cache"});
  std::optional<Bytes> named;
  const Json out = Json::parse(f.out);
  for (const Json& row : out["rows"]) {
    const auto budget = row["budget_bytes"].get<Bytes>();
    if (row["feasible"].get<bool>()) {
      EXPECT_GE(budget, named.value_or(0));
    } else {
      named = row["smallest_feasible_bytes"].get<Bytes>();
      EXPECT_GT(*named, budget);
    }
  }
  EXPECT_TRUE(named);
}

/// A size on offer needed more than the budget in rounds, which the whole batch does not.
TEST_F(Cli, SizesThatNeedMoreInRoundsThanTheWholeBatchAreNotOffered) {
  for (const char* planner : {"auto", "modnn", "vdnn-plus"}) {
    success({"train",     "mlp",  "--data",       "synthetic", "--batch",     "64",
             "--threads", "1",    "--iterations", "1",         "--link",      "1GB",
             "--devices", "4",    "--budget",     "80%",       "--sub-batch", "auto",
             "--planner", planner});
  }
}

/// A table had two baselines where planners may choose algorithms, and `bound` one that a plan
/// beat.
TEST_F(Cli, WithAlgorithmsToChooseThereIsOneBaselineAndABoundOfAnyChoice) {
  const auto asked = [](const char* command, const Words& more) {
    Words words{command,    "tiny-vgg", "--machine",    "gtx1080ti", "--no-cache",
                "--budget", "60%",      "--algorithms", "auto"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Json bound = success(asked("bound", {}));
  const Json rows = success(asked("compare", {"--planners", "auto,autoswap", "--evaluations", "100",
                                              "--time-limit", "10min"}))["rows"];
  for (const Json& row : rows) {
    const std::string planner = row["planner"];
    SCOPED_TRACE(planner);
    const Json plan = success(
        asked("plan", {"--planner", planner, "--evaluations", "100", "--time-limit", "10min"}));
    EXPECT_EQ(row["unlimited_ms"], bound["unlimited_ms"]);
    EXPECT_EQ(plan["unlimited_ms"], bound["unlimited_ms"]);
    EXPECT_GE(plan["predicted_overhead"], bound["least_overhead"]);
    EXPECT_GE(row["overhead"], bound["least_overhead"]);
    EXPECT_NEAR(row["optimality_gap"].get<double>(),
                row["overhead"].get<double>() - bound["least_overhead"].get<double>(), 1e-9);
  }
}

TEST_F(Cli, ACopyWithinOneSpaceIsNoPlan) {
  const std::string file = TIDEPOOL_SOURCE_FOLDER "/tests/regress/same_space_copy.plan.json";
  expect_error({"check", file}, 5, HasSubstr("inside space"));
  expect_error({"simulate", file}, 5, HasSubstr("inside space"));
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

/// Two copies in read what one host op makes. Where the last pass issued them in another order than
/// the one before, the op waited for the wrong one in the next iteration.
TEST_F(Cli, AHostOpWaitsForTheLastCopyOfTheIterationBefore) {
  success(planning("next_host_write.profile.json", {"--budget", "896", "--planner", "vdnn-all"}));
}

/// "nan" was a rate: a stack trace; as a discount it trained a network of nan and saved it.
TEST_F(Cli, OptionsOfLearnersAreNumbersAndReadByLearnersAlone) {
  const Words plan{"plan", "mlp", "--machine", "gtx1080ti", "--no-cache", "--planner", "autoswap"};
  const auto refused = [&](const Words& more, const char* because) {
    Words words = plan;
    words.insert(words.end(), more.begin(), more.end());
    expect_error(words, 2, HasSubstr(because));
  };
  refused({"--dqn-rate", "nan"}, "not a number from 0 to 1");
  refused({"--dqn-discount", "1.5"}, "not a number from 0 to 1");
  refused({"--dqn-reach", "3"}, "--dqn-reach");
  refused({"--dqn-published"}, "--dqn-published");
}

}  // namespace
}  // namespace tidepool
