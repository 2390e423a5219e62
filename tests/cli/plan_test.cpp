// The built binary plans, proves and simulates, in budgets that can and cannot be met.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::Cli;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::Not;

// ---- plan, check, simulate

/// Saved plans may name a machine of any size: a preset's does not count, others do.
TEST_F(Cli, APlanThatNeedsMoreThanItsMachineHasSaysSo) {
  const std::string path = saved_plan();
  EXPECT_TRUE(success({"check", path})["beyond_memory"].is_null());
  Json file = Json::parse(*read_file(path));
  file["machine"]["name"] = "small";
  file["machine"]["spaces"][0]["bytes"] = 1000;
  const std::string small = write("small.json", file.dump());
  for (const char* command : {"check", "simulate"}) {
    EXPECT_THAT(success({command, small})["beyond_memory"].get<std::string>(),
                AllOf(HasSubstr("of device memory"), HasSubstr("machine 'small' has 1000 B")));
    EXPECT_THAT(tidepool({command, small}).out, HasSubstr("it does not fit: the plan needs"));
    EXPECT_THAT(tidepool({command, path}).out, Not(HasSubstr("does not fit")));
  }
}

TEST_F(Cli, CountsAreInTheRightNumber) {
  const std::string path = saved_plan();
  EXPECT_THAT(tidepool({"simulate", path, "--iterations", "1"}).out,
              Not(AnyOf(HasSubstr("the first 1 "), HasSubstr(" 1 iterations"))));
  const std::string pack = write("one.csv", "id,lower,upper,size\n0,0,1,64\n");
  const Finished packed = tidepool({"pack", pack});
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_THAT(packed.out, HasSubstr("one.csv: 1 buffer in 64 B"));
}

TEST_F(Cli, APlanIsSavedProvedAndSimulatedAsPredicted) {
  const std::string path = folder_.file("plan.json");
  const Json planned = success({"plan", "tiny-vgg", "--batch", "16", "--machine", "gtx1080ti",
                                "--budget", "60%", "--explain", "-o", path});
  EXPECT_LE(planned["footprint_bytes"], planned["budget_bytes"]);
  EXPECT_LT(planned["budget_bytes"], planned["unlimited_peak_bytes"]);
  EXPECT_EQ(planned["output"], path);
  EXPECT_FALSE(planned["decisions"].empty());
  for (const Json& d : planned["decisions"]) EXPECT_FALSE(d["reason"].get<std::string>().empty());

  const Json checked = success({"check", path});
  EXPECT_EQ(checked["proved"], true);
  EXPECT_EQ(checked["footprint_bytes"], planned["footprint_bytes"]);
  EXPECT_EQ(checked["budget_bytes"], planned["budget_bytes"]);

  const Json simulated = success({"simulate", path, "--iterations", "28"});
  EXPECT_DOUBLE_EQ(simulated["iteration_ms"].get<double>(), planned["predicted_ms"].get<double>());
  EXPECT_DOUBLE_EQ(simulated["compute_ms"].get<double>(), planned["compute_ms"].get<double>());
  EXPECT_EQ(simulated["iteration_end_ms"].size(), 28u);

  for (const char* command : {"check", "simulate"}) {
    const Finished text = tidepool({command, path});
    EXPECT_EQ(text.exit_code, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr(path));
  }
}

/// Which decides rounds and algorithms too, and takes milliseconds for it.
TEST_F(Cli, AutoIsNoSlowerThanModnnOnAnyPreset) {
  for (const char* preset : {"tiny-vgg", "tiny-unet"}) {
    for (const char* budget : {"35%", "70%", "150%"}) {
      SCOPED_TRACE(std::string(preset) + " in " + budget);
      const auto planned = [&](const char* planner) {
        return success({"plan", preset, "--batch", "128", "--machine", "gtx1080ti", "--planner",
                        planner, "--budget", budget, "--evaluations", "200", "--explain"});
      };
      const Json best = planned("auto");
      const Json other = planned("modnn");
      EXPECT_LE(best["predicted_ms"].get<double>(), other["predicted_ms"].get<double>());
      for (const Json& d : other["decisions"]) EXPECT_FALSE(d["reason"].get<std::string>().empty());
      EXPECT_GE(best["other_algorithms"]["saved_ms"].get<double>(), 0);
    }
  }
}

TEST_F(Cli, WithoutABudgetNoLoadIsNamed) {
  const Finished f = tidepool({"plan", "tiny-vgg", "--batch", "128", "--machine", "gtx1080ti",
                               "--evaluations", "500", "--explain"});
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.out, HasSubstr("nothing moves, as no --budget is given"));
  EXPECT_THAT(f.out, Not(HasSubstr("under a load of")));
}

TEST_F(Cli, PlanningTwiceGivesTheSameFile) {
  const std::string first = testing::content_of(saved_plan());
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(first, testing::content_of(saved_plan()));
}

TEST_F(Cli, EveryPlannerAndMachineMakesAProvablePlan) {
  const std::string path = folder_.file("p.json");
  for (const char* machine : {"gtx1080ti", "rtx2080ti", "k40", "h200"}) {
    for (const char* planner : {"none", "autoswap", "autoswap-published"}) {
      success({"plan", "tiny-vgg", "--batch", "16", "--machine", machine, "--planner", planner,
               "--budget", "150%", "-o", path});
      EXPECT_EQ(success({"check", path})["proved"], true);
    }
  }
}

TEST_F(Cli, PlannersChooseAlgorithmsWhereTheyAreAskedTo) {
  const auto compute_ms = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"plan", "tiny-vgg",  "--batch",  "256",       "--machine",
                                       "k40",  "--planner", "vdnn-dyn", "--no-cache"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return success(arguments)["compute_ms"].get<double>();
  };
  const double least = compute_ms({"--algorithms", "least-workspace"});
  const double fastest = compute_ms({"--algorithms", "fastest"});
  EXPECT_LT(fastest, least);
  EXPECT_DOUBLE_EQ(compute_ms({}), least) << "bits are those of any other planner";
  const auto chosen_below = [&](const char* workspace) {
    return compute_ms({"--algorithms", "auto", "--workspace-limit", workspace});
  };
  EXPECT_DOUBLE_EQ(chosen_below("1GiB"), fastest) << "nothing is in the way of the fastest";
  EXPECT_DOUBLE_EQ(chosen_below("0"), least);
  const double some = chosen_below("8KiB");
  EXPECT_LT(some, least);
  EXPECT_GT(some, fastest);
  expect_error({"plan", "tiny-vgg", "--machine", "k40", "--workspace-limit", "much"}, 2,
               HasSubstr("--workspace-limit"));
}

TEST_F(Cli, ACorruptedOffsetExitsWith5) {
  const std::string path = saved_plan();
  const Json good = Json::parse(testing::content_of(path));
  // The first op with two device operands: the smaller one where the larger one is.
  Json json = good;
  for (const Json& x : good["plan"]["steady"]["instructions"]) {
    if (x["kind"] != "op" || x["operands"].size() < 2) continue;
    const std::size_t a = x["operands"][0];
    const std::size_t b = x["operands"][x["operands"].size() - 1];
    const Json& placements = good["plan"]["placements"];
    const bool a_is_smaller = placements[a]["bytes"] < placements[b]["bytes"];
    json["plan"]["placements"][a_is_smaller ? a : b]["offset"] =
        placements[a_is_smaller ? b : a]["offset"];
    break;
  }
  ASSERT_NE(json, good);
  write("bad.json", json.dump(1));
  for (const char* command : {"check", "simulate"}) {
    expect_error({command, folder_.file("bad.json")}, 5,
                 AllOf(HasSubstr("bad.json: the plan is wrong: ("), HasSubstr("byte")));
  }
}

TEST_F(Cli, APlanAboveTheBudgetItClaimsExitsWith5) {
  const std::string path = saved_plan();
  Json json = Json::parse(testing::content_of(path));
  json["device_budget"] = json["plan"]["arenas"][0]["bytes"].get<std::int64_t>() - 1;
  write("over.json", json.dump(1));
  expect_error({"check", folder_.file("over.json")}, 5, HasSubstr("(1)"));
}

TEST_F(Cli, AProfileWithSizesThatOverflowExitsWith3) {
  const std::string path = saved_plan();
  Json plan = Json::parse(testing::content_of(path));
  Json profile = {{"schema", 1},
                  {"type", "tidepool profile"},
                  {"fingerprint", "x"},
                  {"machine", plan["machine"]},
                  {"program", plan["program"]}};
  write("good.json", profile.dump(1));
  EXPECT_EQ(tidepool({"plan", "--foreign", "--profile", folder_.file("good.json")}).exit_code, 0);
  for (Json& op : profile["program"]["ops"]) {
    if (op["place"] == "device") {
      op["algorithms"][0]["workspace"] = std::numeric_limits<std::int64_t>::max();
      break;
    }
  }
  write("overflow.json", profile.dump(1));
  const Finished f = tidepool({"plan", "--foreign", "--profile", folder_.file("overflow.json")});
  EXPECT_EQ(f.exit_code, 3) << f.out << f.err;
}

// ---- budgets

TEST_F(Cli, AnInfeasibleBudgetExitsWith4AndTheBudgetItNamesWorks) {
  const Json error =
      expect_error({"plan", "tiny-vgg", "--batch", "16", "--machine", "gtx1080ti", "--budget", "1"},
                   4, AllOf(HasSubstr("smallest feasible budget"), HasSubstr("op '")));
  const std::int64_t smallest = error["smallest_feasible_bytes"];
  const std::vector<std::string> base{"plan",      "tiny-vgg",  "--batch", "16",
                                      "--machine", "gtx1080ti", "--budget"};
  const auto with = [&](std::int64_t budget) {
    auto a = base;
    a.push_back(std::to_string(budget));
    return a;
  };
  EXPECT_LE(success(with(smallest))["footprint_bytes"], smallest);
  EXPECT_EQ(expect_error(with(smallest - 1), 4,
                         HasSubstr("smallest feasible"))["smallest_feasible_bytes"],
            smallest);
}

/// The size in the last brackets of a message, as a person would copy it.
std::string size_in(const std::string& message, const std::string& after) {
  const auto open = message.find('(', message.find(after));
  std::string size = message.substr(open + 1, message.find(')', open) - open - 1);
  std::erase(size, ' ');
  return size;
}

TEST_F(Cli, TheSmallestBudgetAsItIsPrintedIsEnough) {
  for (const char* model : {"vgg11", "mlp", "tiny-vgg"}) {
    std::vector<std::string> arguments{"plan",      model,       "--batch",  "3",
                                       "--machine", "gtx1080ti", "--budget", "1"};
    const Json error = expect_error(arguments, 4, HasSubstr("the smallest feasible budget is"));
    arguments.back() = size_in(error["error"], "the smallest feasible budget is");
    EXPECT_LE(success(arguments)["footprint_bytes"], success(arguments)["budget_bytes"]);
  }
}

TEST_F(Cli, ABudgetThatSmallerRoundsMeetSaysSo) {
  // A planner that does not choose them by itself.
  std::vector<std::string> arguments{"plan",      "mlp",       "--batch",  "8192",     "--machine",
                                     "gtx1080ti", "--planner", "autoswap", "--budget", "40MiB"};
  expect_error(arguments, 4, HasSubstr("41943040 B fit with --sub-batch 2048"));
  arguments.insert(arguments.end(), {"--sub-batch", "2048"});
  success(arguments);
  arguments.back() = "4096";
  expect_error(arguments, 4, HasSubstr("41943040 B fit with --sub-batch 2048"));
  expect_error({"plan", "mlp", "--machine", "gtx1080ti", "--budget", "1KiB"}, 4,
               Not(HasSubstr("fit with")));
  // Its largest op updates a weight, whatever the rounds are; a percentage would be of another
  // peak.
  expect_error({"plan", "mlp", "--machine", "gtx1080ti", "--budget", "80%"}, 4,
               Not(HasSubstr("fit with")));
  expect_error(
      {"plan", "tiny-vgg", "--batch", "64", "--machine", "gtx1080ti", "--budget", "300KiB"}, 4,
      AllOf(HasSubstr("fit with --sub-batch"), HasSubstr("--sub-batch-statistics")));
}

/// In rounds of one sample it would have tens of millions of ops: minutes and gigabytes.
TEST_F(Cli, SmallerRoundsOfAHugeBatchAreNotLookedForToTheEnd) {
  expect_error(
      {"plan", "tiny-vgg", "--batch", "1048576", "--machine", "gtx1080ti", "--budget", "1%"}, 4,
      HasSubstr("cannot be met"));
}

TEST_F(Cli, AHostBudgetThatIsTooSmallNamesTheSmallestThatWorks) {
  std::vector<std::string> arguments{"plan",          "tiny-vgg",  "--batch",       "16",
                                     "--machine",     "gtx1080ti", "--budget",      "50%",
                                     "--planner",     "autoswap",  "--evaluations", "200",
                                     "--host-budget", "64"};
  const Json error = expect_error(arguments, 4, HasSubstr("the least found"));
  const std::int64_t smallest = error["smallest_feasible_bytes"];
  arguments.back() = std::to_string(smallest);
  EXPECT_LE(success(arguments)["host_bytes"], smallest);
  // As text and as JSON each would be searched for again.
  const auto least_of = [&](std::int64_t host) {
    arguments.back() = std::to_string(host);
    std::vector<std::string> as_json = arguments;
    as_json.emplace_back("--json");
    const Finished f = tidepool(as_json);
    EXPECT_EQ(f.exit_code, 4) << f.out;
    const Json refused = Json::parse(f.out);
    EXPECT_THAT(refused["error"].get<std::string>(), HasSubstr("the least found"));
    return refused["smallest_feasible_bytes"].get<std::int64_t>();
  };
  least_of(smallest - 1);
  arguments.back() = size_in(error["error"], "; ");
  success(arguments);
  EXPECT_EQ(error["smallest_feasible_space"], "host");
  // Between the alignments: the search for the smallest once went on for ever.
  EXPECT_EQ(least_of(smallest - 600), smallest);
}

TEST_F(Cli, NoneBelowItsNeedsExitsWith4AndTheBudgetItNamesWorks) {
  std::vector<std::string> arguments{"plan",      "tiny-vgg",  "--batch", "16",       "--machine",
                                     "gtx1080ti", "--planner", "none",    "--budget", "50%"};
  const Json error = expect_error(arguments, 4, HasSubstr("autoswap"));
  arguments.back() = error["smallest_feasible_bytes"].dump();
  success(arguments);
}

/// The default was 100 % of the peak load, which leaves no room for gaps between addresses.
TEST_F(Cli, WithoutABudgetThereIsNoLimit) {
  for (const char* planner : {"none", "autoswap", "tide"}) {
    const std::string path = folder_.file("plan.json");
    const Json j =
        success({"plan", "tiny-vgg", "--machine", "gtx1080ti", "--planner", planner, "-o", path});
    EXPECT_TRUE(j["budget_bytes"].is_null()) << planner;
    EXPECT_NEAR(j["predicted_overhead"].get<double>(), 0, 1e-3) << planner;
    EXPECT_EQ(success({"check", path})["budget_bytes"], j["footprint_bytes"]) << planner;
  }
  const std::vector<std::string> train{
      "train", "tiny-vgg",  "--batch", "16",        "--data", "synthetic",    "--link",
      "500MB", "--threads", "1",       "--planner", "none",   "--iterations", "2"};
  EXPECT_TRUE(success(train)["budget_bytes"].is_null());
  EXPECT_THAT(tidepool(train).out, HasSubstr("budget     none (the unlimited peak is"));
}

/// A time limit would give another plan whenever the machine is busy.
TEST_F(Cli, EvaluationsGiveTheSamePlanAgain) {
  std::vector<std::string> files;
  for (const char* name : {"one.json", "two.json"}) {
    const std::string path = folder_.file(name);
    const Json j =
        success({"plan", "vgg11", "--machine", "gtx1080ti", "--budget", "35%", "--planner", "tide",
                 "--evaluations", "2000", "--no-cache", "-o", path});
    EXPECT_GT(j["predicted_overhead"], 0.001) << "there is something to search for";
    files.push_back(*read_file(path));
  }
  EXPECT_EQ(files[0], files[1]);
  for (const char* none : {"0", "-1", "1.5", "many"}) {
    expect_error({"plan", "tiny-vgg", "--evaluations", none}, 2, HasSubstr("--evaluations"));
  }
}

TEST_F(Cli, TheSizeOfASwarmReachesThePlannerThatHasOneAndOthersRefuseIt) {
  const std::vector<std::string> size{"--pso-particles", "7", "--pso-iterations", "1"};
  const auto with_size = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), size.begin(), size.end());
    return arguments;
  };
  const Json j = success(with_size({"plan", "vgg11", "--machine", "rtx2080ti", "--budget", "70%",
                                    "--planner", "home", "--no-cache"}));
  EXPECT_THAT(j["notes"][0].get<std::string>(), HasSubstr("7 evaluations"));
  for (const char* command : {"plan", "train"}) {
    expect_error(with_size({command, "tiny-vgg", "--planner", "tide"}), 2,
                 AllOf(HasSubstr("--pso-particles"), HasSubstr("'tide'")));
  }
  expect_error({"compare", "tiny-vgg", "--planners", "tide,none", "--pso-iterations", "500"}, 2,
               AllOf(HasSubstr("--pso-iterations"), HasSubstr("'tide, none'")));
  expect_error({"plan", "tiny-vgg", "--planner", "home", "--pso-particles", "0"}, 2,
               HasSubstr("--pso-particles"));
}

TEST_F(Cli, OptionsOfModnnReachItAndOtherPlannersRefuseThem) {
  const std::vector<std::string> plan{"plan", "vgg11",     "--machine", "k40",      "--batch",
                                      "32",   "--planner", "modnn",     "--budget", "90%"};
  const auto notes = [&](const char* option) {
    std::vector<std::string> arguments = plan;
    if (option != nullptr) arguments.emplace_back(option);
    return success(arguments)["notes"].dump();
  };
  EXPECT_THAT(notes(nullptr),
              AllOf(HasSubstr("lower bound in rounds of 32"), HasSubstr("ideal of the whole batch"),
                    Not(HasSubstr("weights leave the device"))));
  EXPECT_THAT(notes("--modnn-weights-leave"), HasSubstr("weights leave the device"));
  notes("--modnn-one-stream");
  for (const char* option : {"--modnn-weights-leave", "--modnn-one-stream"}) {
    for (const char* command : {"plan", "train", "fit"}) {
      expect_error({command, "tiny-vgg", "--planner", "tide", option}, 2,
                   AllOf(HasSubstr(option), HasSubstr("'tide'")));
    }
  }
}

/// Of the planner that is usual; what it says as text is what another says.
TEST_F(Cli, AHostBudgetThatIsTooSmallExitsWith4) {
  const Finished f = tidepool({"plan", "tiny-vgg", "--batch", "16", "--machine", "gtx1080ti",
                               "--host-budget", "64", "--evaluations", "10", "--json"});
  EXPECT_EQ(f.exit_code, 4) << f.out << f.err;
  const Json error = Json::parse(f.out);
  EXPECT_THAT(error["error"].get<std::string>(), HasSubstr("host"));
  EXPECT_GT(error["smallest_feasible_bytes"], 64);
}

TEST_F(Cli, PlansWithAFileBehindTheHostAreProvedSimulatedAndDrawn) {
  const std::string file = folder_.file("p.json");
  std::vector<std::string> arguments{
      "plan", "tiny-vgg",  "--batch",  "64", "--machine", "gtx1080ti",     "--budget",
      "50%",  "--planner", "autoswap", "-o", file,        "--host-budget", "1GiB"};
  const Json without = success(arguments);
  EXPECT_EQ(without["spaces"].size(), 2u);
  arguments.back() = std::to_string(without["host_bytes"].get<std::int64_t>() / 2);
  arguments.insert(arguments.end(), {"--file-tier", "2GB,3GB,duplex"});
  const Json j = success(arguments);
  EXPECT_LE(j["host_bytes"].get<std::int64_t>(), without["host_bytes"].get<std::int64_t>() / 2);
  ASSERT_EQ(j["spaces"].size(), 3u);
  EXPECT_EQ(j["spaces"][2]["name"], "file");
  EXPECT_GT(j["spaces"][2]["bytes"], 0);
  EXPECT_EQ(success({"check", file})["spaces"][2]["bytes"], j["spaces"][2]["bytes"]);
  const Json simulated = success({"simulate", file});
  EXPECT_DOUBLE_EQ(simulated["iteration_ms"], j["predicted_ms"]);
  EXPECT_EQ(simulated["copied"], j["copied"]);
  EXPECT_EQ(success({"info", file})["spaces"], j["spaces"]);
  EXPECT_THAT(tidepool({"info", file}).out, HasSubstr("  file       "));
  EXPECT_THAT(tidepool(arguments).out, HasSubstr("written and"));
  const std::string picture = folder_.file("p.svg");
  success({"export", file, "-o", picture});
  EXPECT_THAT(*read_file(picture), AllOf(HasSubstr("file out"), HasSubstr("file in")));
  arguments.insert(arguments.end(), {"--file-limit", "4KiB"});
  const Finished too_small = tidepool(arguments);
  EXPECT_EQ(too_small.exit_code, 4);
  EXPECT_THAT(too_small.err, HasSubstr("host"));
}

TEST_F(Cli, WhatIsForAFileBehindTheHostIsRefusedElsewhere) {
  const auto with = [](std::vector<std::string> more) {
    std::vector<std::string> arguments{"plan", "tiny-vgg"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  expect_error(with({"--machine", "gtx1080ti", "--file-tier", "1GB,1GB"}), 2,
               HasSubstr("--host-budget"));
  expect_error(with({"--machine", "gtx1080ti", "--file-tier", "measured", "--host-budget", "1GB"}),
               2, HasSubstr("is of a disk of this machine"));
  expect_error(with({"--machine", "gtx1080ti", "--file-tier", "1GB,1GB", "--host-budget", "1GB",
                     "--file-folder", "/var/tmp"}),
               2, AllOf(HasSubstr("--machine"), HasSubstr("--file-folder")));
  expect_error({"plan", "--profile", "p.json", "--file-tier", "1GB,1GB", "--host-budget", "1GB"}, 2,
               AllOf(HasSubstr("--profile"), HasSubstr("--file-tier")));
  expect_error(with({"--machine", "gtx1080ti", "--host-budget", "1GB", "--file-limit", "1GB"}), 2,
               HasSubstr("--file-tier"));
  for (const char* wrong : {"1GB", "1GB,0", "1GB,1GB,both", "fast,1GB", "1GB,1GB,duplex,"}) {
    expect_error(with({"--machine", "gtx1080ti", "--host-budget", "1GB", "--file-tier", wrong}), 2,
                 HasSubstr("WRITE,READ"));
  }
  expect_error(with({"--machine", "k40", "--host-budget", "1GB", "--file-tier", "1GB,1GB",
                     "--devices", "2"}),
               2, HasSubstr("--devices"));
}

TEST_F(Cli, PlansOfSeveralDevicesAreProvedSimulatedAndDrawn) {
  const std::string file = folder_.file("p.json");
  const auto plan = [&](const char* accumulation) {
    return success({"plan", "mlp", "--machine", "k40", "--batch", "64", "--devices", "4",
                    "--accumulation", accumulation, "--planner", "none", "-o", file});
  };
  const Json naive = plan("naive");
  const Json overlapped = plan("overlapped");
  EXPECT_EQ(overlapped["parallel"]["devices"], 4);
  EXPECT_EQ(overlapped["parallel"]["space_bytes"].size(), 5U);
  EXPECT_LT(overlapped["parallel"]["predicted_ms"], naive["parallel"]["predicted_ms"]);
  EXPECT_GT(overlapped["parallel"]["speed_up"], 0);
  EXPECT_EQ(tidepool({"check", file}).exit_code, 0);
  const Json simulated = success({"simulate", file});
  EXPECT_EQ(simulated["iteration_ms"], overlapped["parallel"]["predicted_ms"]);
  EXPECT_EQ(tidepool({"export", file, "-o", folder_.file("p.svg")}).exit_code, 0);
}

TEST_F(Cli, WhatIsForSeveralDevicesIsRefusedOfOneAndTheOtherWayRound) {
  const std::vector<std::string> plan{"plan", "mlp", "--machine", "k40", "--batch", "64"};
  const auto refused = [&](std::vector<std::string> more, const char* why) {
    more.insert(more.begin(), plan.begin(), plan.end());
    expect_error(more, 2, HasSubstr(why));
  };
  refused({"--accumulation", "naive"}, "--devices");
  refused({"--host-cores", "2"}, "--devices");
}

}  // namespace
}  // namespace tidepool
