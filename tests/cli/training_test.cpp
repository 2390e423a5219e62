// The built binary trains, and is interrupted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/cli_fixture.h"
#include "support/struck_training.h"
#include "support/terminal.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::Cli;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::run_process;

// ---- train

TEST_F(Cli, OptionsOfEpochTrainingWithoutEpochsAreUsageErrors) {
  for (const char* option : {"--checkpoint", "--resume"}) {
    expect_error({"train", "tiny-vgg", "--data", "synthetic", option, "x.ckpt"}, 2,
                 HasSubstr("--epochs"));
  }
  expect_error({"train", "tiny-vgg", "--data", "synthetic", "--no-evaluate"}, 2,
               HasSubstr("--epochs"));
  expect_error({"train", "tiny-vgg", "--data", "synthetic", "--epochs", "1", "--verify"}, 2,
               HasSubstr("--epochs"));
}

std::vector<std::string> train(const std::string& budget, const std::string& iterations = "3") {
  return {"train", "tiny-vgg",  "--batch", "16",       "--data", "synthetic",    "--link",
          "500MB", "--threads", "1",       "--budget", budget,   "--iterations", iterations};
}

void expect_trained(const Json& j) {
  for (const char* field : {"schema",
                            "model",
                            "batch",
                            "device",
                            "planner",
                            "budget_bytes",
                            "unlimited_peak_bytes",
                            "footprint_bytes",
                            "arena_peak_bytes",
                            "unlimited_ms",
                            "measured_ms",
                            "predicted_ms",
                            "overhead",
                            "predicted_overhead",
                            "swapped_tensors",
                            "swap_bytes",
                            "recomputed_ops",
                            "plan_ms",
                            "losses",
                            "identical"}) {
    EXPECT_TRUE(j.contains(field)) << field;
  }
  EXPECT_EQ(j["model"], "tiny-vgg");
  EXPECT_EQ(j["batch"], 16);
  EXPECT_EQ(j["device"], "cpu");
  EXPECT_EQ(j["planner"], "auto");
  EXPECT_EQ(j["identical"], true);
  EXPECT_LE(j["arena_peak_bytes"], j["budget_bytes"]);
  EXPECT_LE(j["footprint_bytes"], j["budget_bytes"]);
  EXPECT_LE(j["arena_peak_bytes"], j["footprint_bytes"]);
  EXPECT_EQ(j["losses"].size(), 3u);
  for (const Json& loss : j["losses"]) EXPECT_TRUE(loss.is_number()) << loss;
}

TEST_F(Cli, TrainingIsIdenticalAndInsideEveryBudget) {
  Json losses;
  for (const char* budget : {"100%", "70%", "40%"}) {
    auto arguments = train(budget);
    arguments.push_back("--verify");
    const Json j = success(arguments);
    expect_trained(j);
    if (losses.is_null()) losses = j["losses"];
    EXPECT_EQ(j["losses"], losses) << budget;
  }
}

/// The choice follows from measured times, and times are measured more than once.
TEST_F(Cli, TrainingWithTheFastestAlgorithmsIsIdenticalEveryTime) {
  for (const char* budget : {"100%", "75%", "50%", "40%"}) {
    for (int i = 0; i < 3; ++i) {
      auto arguments = train(budget);
      arguments.insert(arguments.end(), {"--verify", "--algorithms", "fastest"});
      const Json j = success(arguments);
      expect_trained(j);
    }
  }
}

TEST_F(Cli, TrainingAtExactlyTheSmallestFeasibleBudgetIsIdentical) {
  const Json error =
      expect_error(train("1"), 4, AllOf(HasSubstr("cannot be met"), HasSubstr("op '")));
  const std::int64_t smallest = error["smallest_feasible_bytes"];
  auto arguments = train(std::to_string(smallest));
  arguments.push_back("--verify");
  const Json j = success(arguments);
  expect_trained(j);
  EXPECT_EQ(j["budget_bytes"], smallest);
  EXPECT_GT(j["swapped_tensors"], 0);
  EXPECT_EQ(expect_error(train(std::to_string(smallest - 1)), 4,
                         HasSubstr("cannot be met"))["smallest_feasible_bytes"],
            smallest);
}

TEST_F(Cli, TrainingWithoutVerifyDoesNotClaimToBeIdentical) {
  EXPECT_TRUE(success(train("80%"))["identical"].is_null());
}

TEST_F(Cli, TrainingSaysWhichPlansItTried) {
  auto arguments = train("60%", "40");
  arguments.insert(arguments.end(), {"--planner", "auto"});
  const Json tried = success(arguments);
  const Json& trials = tried["trials"];
  EXPECT_TRUE(trials["why_none"].is_null()) << trials;
  ASSERT_FALSE(trials["plans"].empty());
  const Json& kept = trials["plans"][trials["kept"].get<std::size_t>()];
  EXPECT_EQ(kept["planner"], tried["plan_of"]);
  EXPECT_GT(kept["measured_ms"], 0);  // a plan that is faster only by chance may not be kept
  for (const Json& plan : trials["plans"]) EXPECT_GT(plan["predicted_ms"], 0);
  auto alone = arguments;
  alone.emplace_back("--no-trials");
  const Json as_planned = success(alone);
  EXPECT_EQ(as_planned["trials"]["why_none"], "switched off");
  EXPECT_EQ(as_planned["state_crc32"], tried["state_crc32"]);
  EXPECT_EQ(success(train("80%"))["trials"]["why_none"], "it takes at least 12 --iterations");
  auto few = train("80%", "3");
  EXPECT_THAT(tidepool(few).out, HasSubstr("trials     none: it takes at least 12 --iterations"));
}

/// The first iteration of a training runs on cold caches.
TEST_F(Cli, WarmUpIterationsAreNotMeasured) {
  const Json one = success(train("60%", "1"));
  EXPECT_EQ(one["measured_iterations"], 0);
  EXPECT_TRUE(one["overhead"].is_null());
  EXPECT_TRUE(one["measured_ms"].is_null());
  EXPECT_THAT(tidepool(train("60%", "1")).out, HasSubstr("not measured"));
  const Json two = success(train("60%", "2"));
  EXPECT_EQ(two["measured_iterations"], 1);
  EXPECT_THAT(tidepool(train("60%", "2")).out, HasSubstr("too few to tell it from noise"));
  EXPECT_EQ(success(train("60%", "10"))["measured_iterations"], 9);
  auto compared = train("60%", "10");
  compared.push_back("--baseline");
  EXPECT_EQ(success(compared)["measured_iterations"], 7) << "two blocks of 4, one of 2";
}

/// What needs the same training without a budget is measured where that is asked for only.
TEST_F(Cli, TheMeasuredOverheadNeedsABaselineThePredictedOneDoesNot) {
  const Json alone = success(train("60%", "6"));
  EXPECT_TRUE(alone["overhead"].is_null());
  EXPECT_TRUE(alone["unlimited_ms"].is_null());
  EXPECT_TRUE(alone["predicted_overhead"].is_number());
  EXPECT_TRUE(alone["measured_ms"].is_number());
  EXPECT_TRUE(alone["prediction_error"].is_number());
  EXPECT_THAT(tidepool(train("60%", "6")).out,
              AllOf(HasSubstr("by prediction (--baseline measures it)"),
                    Not(HasSubstr("without a budget: overhead"))));
  auto compared = train("60%", "6");
  compared.push_back("--baseline");
  const Json beside = success(compared);
  EXPECT_TRUE(beside["overhead"].is_number());
  EXPECT_LE(beside["overhead_low"], beside["overhead"]);
  EXPECT_GE(beside["overhead_high"], beside["overhead"]);
  const bool quiet = beside["overhead_noise"].is_null();
  EXPECT_TRUE(quiet || beside["overhead_noise"] == "busy machine") << beside["overhead_noise"];
  EXPECT_GT(beside["unlimited_ms"], 0);
  EXPECT_TRUE(beside["identical"].is_null());
  EXPECT_EQ(beside["losses"], alone["losses"]);
  EXPECT_THAT(tidepool(compared).out,
              AllOf(HasSubstr("without a budget: overhead"), Not(HasSubstr("by prediction"))));
}

TEST_F(Cli, LossesThatAreNoNumbersAreWarnedOf) {
  auto arguments = train("100%", "5");
  arguments.insert(arguments.end(), {"--learning-rate", "1e30"});
  const Finished f = tidepool(arguments);
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.err, AllOf(HasSubstr("diverged"), HasSubstr("--learning-rate")));
}

TEST_F(Cli, OptionsThatWouldBeIgnoredAreUsageErrorsThatNameBoth) {
  const auto refused = [&](std::vector<std::string> arguments, const char* one, const char* other) {
    expect_error(std::move(arguments), 2,
                 AllOf(HasSubstr(one), HasSubstr("excludes"), HasSubstr(other)));
  };
  refused({"plan", "tiny-vgg", "--machine", "k40", "--threads", "1"}, "--machine", "--threads");
  refused({"compare", "tiny-vgg", "--machine", "k40", "--link", "1GB"}, "--machine", "--link");
  refused({"plan", "--profile", "x.json", "--batch", "3"}, "--profile", "--batch");
  refused({"plan", "tiny-vgg", "--profile", "x.json"}, "--profile", "model");
  refused({"analyse", "--trace", "x.csv", "--load", "50%", "--sub-batch", "3"}, "--trace",
          "--sub-batch");
  refused({"bound", "--plan", "x.json", "--budget", "50%"}, "--plan", "--budget");
  refused({"train", "tiny-vgg", "--profile", "x.json", "--reprofile"}, "--profile", "--reprofile");
  refused({"fit", "tiny-vgg", "--evaluations", "9", "--time-limit", "1s"}, "--evaluations",
          "--time-limit");
  const std::vector<std::vector<std::string>> ignored{{"--replan"},
                                                      {"--planner", "tide"},
                                                      {"--algorithms", "fastest"},
                                                      {"--time-limit", "1s"},
                                                      {"--evaluations", "9"},
                                                      {"--pso-particles", "9"},
                                                      {"--pso-iterations", "9"},
                                                      {"--modnn-one-stream"}};
  for (const std::vector<std::string>& option : ignored) {
    std::vector<std::string> arguments{"train", "tiny-vgg", "--plan", "x.json"};
    arguments.insert(arguments.end(), option.begin(), option.end());
    refused(arguments, "--plan", option.front().c_str());
  }
}

TEST_F(Cli, EpochsAndIterationsHaveTheSameKeys) {
  const std::vector<std::string> base{"train",     "tiny-vgg",  "--batch",  "2500",
                                      "--data",    "synthetic", "--link",   "1GB",
                                      "--threads", "1",         "--budget", "60%"};
  auto iterations = base;
  iterations.insert(iterations.end(), {"--iterations", "3"});
  auto epochs = base;
  epochs.insert(epochs.end(), {"--epochs", "1", "--no-evaluate"});
  const Json a = success(iterations);
  const Json b = success(epochs);
  for (const auto& [key, value] : a.items()) EXPECT_TRUE(b.contains(key)) << key;
  for (const auto& [key, value] : b.items()) EXPECT_TRUE(a.contains(key)) << key;
  for (const char* key : {"losses", "overhead", "unlimited_ms", "identical"}) {
    EXPECT_TRUE(b[key].is_null()) << key;
  }
  EXPECT_TRUE(a["epochs"].is_null());
  EXPECT_EQ(b["iterations"], 4);
}

TEST_F(Cli, TrainingAsTextSaysThatItIsIdentical) {
  auto arguments = train("70%");
  arguments.push_back("--verify");
  const Finished f = tidepool(arguments);
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.out,
              AllOf(HasSubstr("identical  yes"), HasSubstr("predicted"), HasSubstr("budget")));
}

TEST_F(Cli, AnotherSeedGivesOtherLosses) {
  auto arguments = train("100%");
  const Json first = success(arguments)["losses"];
  arguments.insert(arguments.end(), {"--seed", "2"});
  EXPECT_NE(success(arguments)["losses"], first);
}

TEST_F(Cli, AProfileCanBePlannedFrom) {
  const std::string path = folder_.file("profile.json");
  const Finished f = tidepool({"profile", "tiny-vgg", "--batch", "16", "--data", "synthetic",
                               "--link", "500MB", "--iterations", "1", "-o", path});
  ASSERT_EQ(f.exit_code, 0) << f.err;
  const Json planned = success({"plan", "--profile", path, "--budget", "60%"});
  EXPECT_LE(planned["footprint_bytes"], planned["budget_bytes"]);
}

// ---- interruption

Finished interrupted_run(std::vector<std::string> arguments, testing::Interrupt interrupt) {
  arguments = testing::with_short_search(std::move(arguments));
  arguments.insert(arguments.begin(), TIDEPOOL_BINARY);
  return testing::run_in_terminal(std::move(arguments), 80, std::move(interrupt));
}

TEST_F(Cli, AnInterruptInTheMiddleOfATrainingExitsWithTheCodeOfItsSignal) {
  success(train("60%", "1"));  // whose profile the others find in the cache
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Finished f = interrupted_run(train("60%", "1000000000"), {": iteration ", signal});
    EXPECT_FALSE(f.timed_out) << "hangs";
    EXPECT_EQ(f.exit_code, 128 + signal) << f.out;
    // "interrupted after N iterations" where the iteration under way ends soon.
    EXPECT_THAT(f.out, AllOf(HasSubstr("interrupted"), HasSubstr("nothing was saved")));
    EXPECT_THAT(f.out, Not(HasSubstr("budget  "))) << "no report";
  }
}

TEST_F(Cli, TwoSignalsWithinASecondAreOne) {
  const std::string checkpoint = folder_.file("c.ckpt");
  const std::vector<std::string> arguments{
      TIDEPOOL_BINARY, "train",         "tiny-vgg",     "--batch",   "100", "--data",
      "synthetic",     "--link",        "1GB",          "--threads", "1",   "--epochs",
      "100000",        "--no-evaluate", "--checkpoint", checkpoint};
  // As `timeout` sends a signal: to the process and to its group.
  const Finished f = run_process(arguments, [&](pid_t process) {
    testing::wait_until_exists(process, checkpoint);
    std::filesystem::remove(checkpoint);
    ::kill(process, SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ::kill(process, SIGTERM);
  });
  EXPECT_EQ(f.signal, 0);
  EXPECT_EQ(f.exit_code, 128 + SIGTERM) << f.err;
  EXPECT_THAT(f.err, AllOf(HasSubstr("go on with --resume"), Not(HasSubstr("ended at once"))));
  EXPECT_TRUE(std::filesystem::exists(checkpoint)) << "saved again at the end";
}

/// An iteration takes minutes then; it is not waited for, as nothing would be saved.
TEST_F(Cli, MoreThreadsThanCoresAreWarnedOfAndHearAnInterrupt) {
  for (const bool json : {false, true}) {
    std::vector<std::string> arguments{"train",     "tiny-vgg",  "--batch",      "512",
                                       "--data",    "synthetic", "--link",       "1GB",
                                       "--threads", "64",        "--iterations", "100000"};
    if (json) arguments.emplace_back("--json");
    const Finished f = interrupted_run(
        arguments, {"--threads 64 is more than the ", SIGINT, std::chrono::milliseconds(1000)});
    EXPECT_FALSE(f.timed_out) << "hangs";
    EXPECT_EQ(f.exit_code, 130) << f.out;
    if (json) {
      const Json object = Json::parse(testing::object_in(f.out), nullptr, false);
      ASSERT_TRUE(object.is_object()) << f.out;
      EXPECT_THAT(object["error"].get<std::string>(), HasSubstr("interrupted"));
    }
  }
}

TEST_F(Cli, AnInterruptAtTheVeryStartExitsWith130) {
  auto arguments = train("60%", "1000000000");
  arguments.insert(arguments.begin(), TIDEPOOL_BINARY);
  const Finished f = run_process(std::move(arguments), [](pid_t process) {
    testing::wait_until_catches(process, SIGINT);
    ::kill(process, SIGINT);
  });
  EXPECT_FALSE(f.timed_out) << "hangs";
  EXPECT_EQ(f.exit_code, 130) << f.err;
}

TEST_F(Cli, AnInterruptWithJsonStillPrintsAnObject) {
  auto arguments = train("60%", "1000000000");
  arguments.push_back("--json");
  const Finished f = interrupted_run(arguments, {": iteration "});
  EXPECT_EQ(f.exit_code, 130) << f.out;
  const Json object = Json::parse(testing::object_in(f.out), nullptr, false);
  ASSERT_TRUE(object.is_object()) << f.out;
  EXPECT_EQ(object["schema"], 1);
  EXPECT_THAT(object["error"].get<std::string>(), HasSubstr("interrupted"));
  EXPECT_EQ(object.value("exit_code", 0), 130) << "the object's exit code is the process's";
}

/// A search that is stopped has a plan, which is kept; the exit code says that it was stopped.
TEST_F(Cli, AnInterruptWhilePlanningExitsWith130) {
  const std::string path = folder_.file("plan.json");
  // What it shows of a search is about the plan that it has.
  const Finished f = testing::interrupted_in_terminal(
      {TIDEPOOL_BINARY, "plan", "vgg16", "--machine", "gtx1080ti", "--budget", "15%", "--planner",
       "tide", "--time-limit", "60s", "-o", path, "--json"},
      "ms over the least");
  EXPECT_FALSE(f.timed_out) << "hangs";
  EXPECT_EQ(f.exit_code, 130) << f.out;
  EXPECT_THAT(f.out, HasSubstr("tidepool: interrupted"));
  const Json object = Json::parse(testing::object_in(f.out), nullptr, false);
  ASSERT_TRUE(object.is_object()) << f.out;
  EXPECT_EQ(object["interrupted"], true);
  EXPECT_EQ(success({"check", path})["proved"], true);
}

TEST_F(Cli, AnInterruptWhileProfilingExitsWith130) {
  const std::string path = folder_.file("profile.json");
  const Finished f =
      interrupted_run({"profile", "tiny-vgg", "--batch", "512", "--data", "synthetic", "--link",
                       "500MB", "--iterations", "1000", "-o", path},
                      {"profiling "});
  EXPECT_FALSE(f.timed_out) << "hangs";
  EXPECT_EQ(f.exit_code, 130) << f.out;
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace tidepool
