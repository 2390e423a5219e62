// The built binary as a user meets it: exit codes, messages, JSON. Nothing here asserts a time.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <sstream>

#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::Cli;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::run_process;
using ::testing::StartsWith;

// ---- usage

TEST_F(Cli, HelpOfEverySubcommandIsThere) {
  const Finished all = tidepool({"--help"});
  EXPECT_EQ(all.exit_code, 0);
  for (const char* command : {"train", "plan", "check", "simulate", "pack", "profile", "models",
                              "machines", "planners"}) {
    EXPECT_THAT(all.out, HasSubstr(command));
    const Finished help = tidepool({command, "--help"});
    EXPECT_EQ(help.exit_code, 0) << command;
    EXPECT_THAT(help.out, HasSubstr("--json")) << command;
    EXPECT_THAT(help.err, IsEmpty()) << command;
  }
}

TEST_F(Cli, HelpCanBeAskedForInFront) {
  const std::string help = tidepool({"train", "--help"}).out;
  EXPECT_EQ(tidepool({"help", "train"}).out, help);
  EXPECT_EQ(tidepool({"--help", "train"}).out, help);
  EXPECT_EQ(tidepool({"help"}).out, tidepool({"--help"}).out);
}

TEST_F(Cli, VersionIsPrinted) {
  const Finished f = tidepool({"--version"});
  EXPECT_EQ(f.exit_code, 0);
  EXPECT_THAT(f.out, StartsWith("tidepool "));
}

TEST_F(Cli, WrongUsageExitsWith2) {
  expect_error({}, 2, HasSubstr("--help"));
  expect_error({"fly"}, 2, HasSubstr("--help"));
  expect_error({"train"}, 2, HasSubstr("model"));
  expect_error({"train", "tiny-vgg", "--batch", "0"}, 2, HasSubstr("--batch"));
  expect_error({"train", "tiny-vgg", "--batch", "ten"}, 2, HasSubstr("--batch"));
  expect_error({"train", "tiny-vgg", "--no-such-option"}, 2, HasSubstr("--no-such-option"));
  expect_error({"train", "tiny-vgg", "--data", "imagenet"}, 2, HasSubstr("--data"));
  expect_error({"train", "tiny-vgg", "--iterations", "0"}, 2, HasSubstr("--iterations"));
  expect_error({"plan"}, 2, HasSubstr("give a model"));
  expect_error({"plan", "tiny-vgg", "--machine", "k40", "--profile", "x"}, 2, HasSubstr("exclude"));
  expect_error({"simulate", "plan.json", "--iterations", "0"}, 2, HasSubstr("--iterations"));
}

/// A variable that is not set: "$PLAN" was taken for no plan at all.
TEST_F(Cli, EmptyValuesAreUsageErrors) {
  expect_error({"train", "tiny-vgg", "--plan", ""}, 2, HasSubstr("--plan: its value is empty"));
  expect_error({"plan", "tiny-vgg", "--machine", "k40", "-o", ""}, 2, HasSubstr("--output"));
  expect_error({"plan", "tiny-vgg", "--machine", ""}, 2, HasSubstr("--machine: its value"));
  expect_error({"plan", ""}, 2, HasSubstr("model"));
  expect_error({"check", ""}, 2, HasSubstr("plan"));
}

TEST_F(Cli, SeedsAreWholeNumbers) {
  for (const char* seed : {"-1", "18446744073709551616", "1.5", "0x10", " 1", "1e3"}) {
    expect_error({"plan", "tiny-vgg", "--machine", "k40", "--seed", seed}, 2,
                 AllOf(HasSubstr("--seed"), HasSubstr("is not a whole number from 0 to")));
    expect_error({"pack", "x.csv", "--seed", seed}, 2, HasSubstr("is not a whole number"));
  }
  success({"plan", "tiny-vgg", "--machine", "k40", "--seed", "18446744073709551615"});
}

TEST_F(Cli, WrongValuesNameTheirOption) {
  expect_error({"train", "tiny-vgg", "--weight-decay", "-1"}, 2,
               HasSubstr("--weight-decay: -1 is below 0"));
  expect_error({"analyse", "tiny-vgg", "--machine", "k40", "--load", "50%", "--smallest", "-1"}, 2,
               HasSubstr("--smallest"));
  expect_error({"analyse", "tiny-vgg", "--machine", "k40", "--load", "1%"}, 4, HasSubstr("--load"));
  expect_error({"pack", "x.csv", "--time-limit", "0"}, 2, HasSubstr("--time-limit"));
}

TEST_F(Cli, UnknownNamesExitWith2AndListOrSuggestTheKnownOnes) {
  const std::vector<std::string> synthetic{"--data", "synthetic", "--link", "1GB"};
  const auto with = [&](std::vector<std::string> a) {
    a.insert(a.end(), synthetic.begin(), synthetic.end());
    return a;
  };
  expect_error(with({"train", "tiny-vggg"}), 2,
               AllOf(HasSubstr("'tiny-vggg'"), HasSubstr("tiny-vgg")));
  expect_error(with({"train", "tiny-vgg", "--planner", "magic"}), 2,
               AllOf(HasSubstr("'magic'"), HasSubstr("autoswap")));
  expect_error(with({"train", "tiny-vgg", "--device", "abacus"}), 2,
               AllOf(HasSubstr("'abacus'"), HasSubstr("cpu")));
  expect_error({"plan", "tiny-vgg", "--machine", "cray"}, 2,
               AllOf(HasSubstr("'cray'"), HasSubstr("gtx1080ti")));
  expect_error({"plan", "tiny-vggg", "--machine", "k40"}, 2, HasSubstr("tiny-vgg"));
  expect_error({"plan", "tiny-vgg", "--machine", "k40", "--planner", "magic"}, 2,
               HasSubstr("none"));
}

TEST_F(Cli, WhatIsNearlyRightIsOffered) {
  expect_error({"trian", "tiny-vgg"}, 2,
               HasSubstr("unknown command 'trian'; did you mean 'train'?"));
  expect_error({"train", "tiny-vgg", "--iteratons", "3"}, 2,
               HasSubstr("unknown option '--iteratons'; did you mean '--iterations'?"));
  expect_error({"train", "tiny-vgg", "--bugdet=60%"}, 2, HasSubstr("did you mean '--budget'?"));
  expect_error({"plan", "tiny-vg", "--machine", "k40"}, 2, HasSubstr("did you mean 'tiny-vgg'?"));
  expect_error({"plan", "tiny-vgg", "--machine", "gtx1080"}, 2,
               HasSubstr("did you mean 'gtx1080ti'?"));
  expect_error({"plan", "tiny-vgg", "--machine", "k40", "--planner", "tied"}, 2,
               HasSubstr("did you mean 'tide'?"));
  expect_error({"train", "tiny-vgg", "--device", "cpv"}, 2, HasSubstr("did you mean 'cpu'?"));
  expect_error({"export", "plan.json", "--to", "htlm"}, 2, HasSubstr("did you mean 'html'?"));
  const Json far =
      expect_error({"plan", "tiny-vgg", "--machine", "cray-1"}, 2, HasSubstr("there are"));
  EXPECT_THAT(far["error"].get<std::string>(), Not(HasSubstr("did you mean")));
}

TEST_F(Cli, TimeLimitsTakeUnits) {
  const std::vector<std::string> plan{"plan",      "tiny-vgg", "--machine", "k40",
                                      "--budget",  "60%",      "--batch",   "16",
                                      "--planner", "tide",     "--no-cache"};
  const auto with = [&](const char* limit) {
    auto a = plan;
    a.insert(a.end(), {"--time-limit", limit});
    return a;
  };
  for (const char* limit : {"20ms", "0.02s", "0.0003min", "0.02"}) success(with(limit));
  for (const char* limit : {"20 parsecs", "fast", "-1s", "1e1s", ""}) {
    expect_error(with(limit), 2, AllOf(HasSubstr("--time-limit"), HasSubstr("500ms, 10s or 2min")));
  }
  expect_error(with("0s"), 2, HasSubstr("--time-limit"));
  EXPECT_THAT(tidepool({"plan", "--help"}).out, HasSubstr("DURATION=10 s"));
}

/// The data has 32x32 colour images: 784 inputs in one command and 3072 in the other.
TEST_F(Cli, MlpIsOneNetworkInEveryCommand) {
  const Json models = success({"models", "--batch", "4"});
  std::int64_t parameters = 0;
  for (const Json& m : models["models"]) {
    if (m["name"] == "mlp") parameters = m["parameters"];
  }
  for (const char* data : {"synthetic", "fashion-mnist"}) {
    const Json profile = success({"profile", "mlp", "--batch", "4", "--data", data, "--link", "1GB",
                                  "--threads", "1", "--iterations", "1"});
    std::int64_t weights = 0;
    for (const Json& t : profile["program"]["tensors"]) {
      if (t["kind"] == "weight") weights += t["bytes"].get<std::int64_t>();
    }
    EXPECT_EQ(weights, 4 * parameters) << data;
  }
}

TEST_F(Cli, BadSizesExitWith2) {
  for (const char* budget : {"", "lots", "-5MiB", "0%", "5000%", "10000000TiB"}) {
    expect_error({"plan", "tiny-vgg", "--machine", "k40", "--budget", budget}, 2,
                 HasSubstr(fmt::format("'{}'", budget)));
  }
  expect_error({"plan", "tiny-vgg", "--machine", "k40", "--host-budget", "0"}, 2,
               HasSubstr("host"));
  for (const char* link : {"fast", "0", "0.5", "-1GB"}) {
    expect_error({"train", "tiny-vgg", "--batch", "16", "--data", "synthetic", "--link", link}, 2,
                 HasSubstr("--link"));
  }
}

TEST_F(Cli, ABatchLargerThanTheDataExitsWith2) {
  expect_error({"train", "tiny-vgg", "--batch", "20000", "--data", "synthetic", "--link", "1GB"}, 2,
               AllOf(HasSubstr("20000"), HasSubstr("synthetic")));
}

TEST_F(Cli, ArgumentsThatAreNotUtf8AreStillReported) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"plan", "tiny\xff", "--machine", "k40"},
        {"plan", "tiny-vgg", "--machine", "k\xff"},
        {"plan", "tiny-vgg", "--machine", "k40", "--budget", "\xc3"}}) {
    auto with_json = arguments;
    with_json.push_back("--json");
    const Finished f = tidepool(with_json);
    EXPECT_EQ(f.exit_code, 2) << f.out << f.err;
    EXPECT_TRUE(Json::parse(f.out, nullptr, false).is_object()) << f.out << f.err;
  }
}

/// `train --profile vgg11.profile.json` had no line before it that made the file.
TEST_F(Cli, ExamplesRunWhenTheyArePastedInOrder) {
  const std::filesystem::path binary = TIDEPOOL_BINARY;
  for (const char* command :
       {"", "train", "plan", "profile", "check", "simulate", "export", "info", "pack"}) {
    const std::string folder = folder_.file(std::string("examples-") + command);
    std::filesystem::create_directories(folder);
    std::istringstream help(tidepool(*command == 0 ? std::vector<std::string>{"--help"}
                                                   : std::vector<std::string>{command, "--help"})
                                .out);
    std::string script =
        fmt::format("set -e\ncd '{}'\nPATH='{}':$PATH\n", folder, binary.parent_path().string());
    int examples = 0;
    for (std::string line; std::getline(help, line);) {
      if (!line.starts_with("  tidepool ") && !line.starts_with("  printf ")) continue;
      if (line.find('#') != std::string::npos) continue;  // needs a file or minutes
      script += line + "\n";
      ++examples;
    }
    EXPECT_GT(examples, 0) << command;
    const Finished f = run_process({"/bin/sh", "-c", script});
    EXPECT_EQ(f.exit_code, 0) << script << f.err;
  }
}

// ---- lists

TEST_F(Cli, ListsAreCompleteInJson) {
  const Json models = success({"models", "--batch", "8"});
  const auto named = [](const Json& list, const char* name) {
    return std::any_of(list.begin(), list.end(), [&](const Json& j) { return j["name"] == name; });
  };
  EXPECT_TRUE(named(models["models"], "tiny-vgg"));
  for (const Json& m : models["models"]) {
    EXPECT_GT(m["unlimited_peak_bytes"], m["smallest_feasible_bytes"]) << m;
  }
  const Json machines = success({"machines"});
  EXPECT_TRUE(named(machines["presets"], "gtx1080ti"));
  EXPECT_TRUE(named(machines["devices"], "cpu"));
  const Json planners = success({"planners"});
  EXPECT_TRUE(named(planners["planners"], "autoswap"));
  for (const char* command : {"models", "machines", "planners"}) {
    const Finished text = tidepool({command});
    EXPECT_EQ(text.exit_code, 0);
    EXPECT_THAT(text.out, Not(IsEmpty()));
  }
}

TEST_F(Cli, AModelsPeakIsForTheImageItNames) {
  for (const Json& m : success({"models", "--batch", "1"})["models"]) {
    EXPECT_EQ(m["image"],
              m["name"] == "tiny-vgg" || m["name"] == "tiny-resnet" ? "3x8x8" : "3x32x32")
        << m["name"];
  }
}

/// One plans for other cards than one has, and is told where it would not run.
TEST_F(Cli, APlanAboveThePresetsMemoryIsWarnedOf) {
  const Finished f = tidepool(
      {"plan", "vgg16", "--batch", "20000", "--machine", "k40", "--planner", "none", "--no-cache"});
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.err, AllOf(HasSubstr("the plan needs"), HasSubstr("'k40' has")));
  EXPECT_THAT(tidepool({"plan", "tiny-vgg", "--machine", "k40", "--no-cache"}).err, IsEmpty());
}

// ---- files

TEST_F(Cli, MissingFilesExitWith3) {
  for (const char* command : {"check", "simulate"}) {
    expect_error({command, "/nonexistent/plan.json"}, 3,
                 HasSubstr("/nonexistent/plan.json: cannot open: No such file"));
  }
  expect_error({"plan", "--profile", "/nonexistent/p.json"}, 3, HasSubstr("/nonexistent/p.json"));
}

TEST_F(Cli, MalformedJsonExitsWith3AndNamesFileAndLine) {
  const std::string path = write("broken.json", "{\n  \"schema\": 1,\n  oops\n}\n");
  for (const char* command : {"check", "simulate"}) {
    expect_error({command, path}, 3, HasSubstr(fmt::format("{}:3: not valid JSON", path)));
  }
  expect_error({"plan", "--profile", path}, 3, HasSubstr(fmt::format("{}:3: ", path)));
}

TEST_F(Cli, ANumberTooLargeForJsonExitsWith3) {
  expect_error({"check", write("huge.json", "{\n\"schema\": 1e999\n}")}, 3,
               HasSubstr("huge.json:2"));
}

TEST_F(Cli, BytesThatAreNotUtf8ExitWith3) {
  expect_error({"check", write("latin1.json", "{\"type\": \"caf\xe9\"}")}, 3,
               HasSubstr("latin1.json:1"));
}

TEST_F(Cli, ALongForeignTextInTheWrongPlaceExitsWith3) {
  std::string text = "{\"schema\": 1, \"type\": \"a";
  for (int i = 0; i < 40; ++i) text += "\xc3\xa9";
  expect_error({"check", write("accents.json", text + "\"}")}, 3, HasSubstr("field 'type'"));
}

TEST_F(Cli, AnEmptyFileAndAFolderExitWith3) {
  expect_error({"check", write("empty.json", "")}, 3, HasSubstr("empty.json:1"));
  expect_error({"check", folder_.path().string()}, 3, HasSubstr("directory"));
}

TEST_F(Cli, AFieldThatIsWrongExitsWith3AndNamesFileLineAndField) {
  const std::string path = saved_plan();
  Json json = Json::parse(testing::content_of(path));
  json["plan"]["steady"]["instructions"][0]["stream"] = "left";
  const std::string text = json.dump(1);
  write("wrong.json", text);
  const std::size_t position = text.find("\"left\"");
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n');
  expect_error(
      {"check", folder_.file("wrong.json")}, 3,
      HasSubstr(fmt::format("wrong.json:{}: field 'plan.steady.instructions[0].stream'", line)));
}

TEST_F(Cli, AFileOfAnotherKindExitsWith3) {
  const std::string path = saved_plan();
  expect_error({"plan", "--profile", path}, 3, HasSubstr("field 'type'"));
}

TEST_F(Cli, AnOutputThatCannotBeWrittenExitsWith1) {
  expect_error({"plan", "tiny-vgg", "--machine", "k40", "-o", "/nonexistent/plan.json"}, 1,
               HasSubstr("/nonexistent/plan.json: cannot create"));
}

// ---- plan, check, simulate

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
  std::vector<std::string> arguments{"plan",      "mlp",       "--batch",  "8192",
                                     "--machine", "gtx1080ti", "--budget", "40MiB"};
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

TEST_F(Cli, AHostBudgetThatIsTooSmallNamesTheSmallestThatWorks) {
  std::vector<std::string> arguments{"plan",          "tiny-vgg",  "--batch",  "16",
                                     "--machine",     "gtx1080ti", "--budget", "50%",
                                     "--host-budget", "64"};
  const Json error = expect_error(arguments, 4, HasSubstr("the smallest feasible one is"));
  const std::int64_t smallest = error["smallest_feasible_bytes"];
  arguments.back() = std::to_string(smallest);
  EXPECT_LE(success(arguments)["host_bytes"], smallest);
  arguments.back() = std::to_string(smallest - 1);
  expect_error(arguments, 4, HasSubstr("the smallest feasible one is"));
  arguments.back() = size_in(error["error"], "the smallest feasible one is");
  success(arguments);
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
    const Json j = success({"plan", "tiny-vgg", "--machine", "gtx1080ti", "--planner", planner,
                            "--time-limit", "1s", "-o", path});
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

TEST_F(Cli, AHostBudgetThatIsTooSmallExitsWith4) {
  expect_error(
      {"plan", "tiny-vgg", "--batch", "16", "--machine", "gtx1080ti", "--host-budget", "64"}, 4,
      HasSubstr("host"));
}

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
  EXPECT_EQ(j["planner"], "autoswap");
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
  for (const char* option : {"--replan", "--planner", "--algorithms", "--time-limit"}) {
    std::vector<std::string> arguments{"train", "tiny-vgg", "--plan", "x.json", option};
    if (option != std::string_view("--replan")) {
      arguments.emplace_back(option == std::string_view("--time-limit")   ? "1s"
                             : option == std::string_view("--algorithms") ? "fastest"
                                                                          : "tide");
    }
    refused(arguments, "--plan", option);
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

Finished interrupted_run(std::vector<std::string> arguments, int signal, int settle_ms) {
  arguments.insert(arguments.begin(), TIDEPOOL_BINARY);
  return run_process(
      std::move(arguments),
      [&](pid_t process) {
        testing::wait_until_catches(process, signal);
        std::this_thread::sleep_for(std::chrono::milliseconds(settle_ms));
        ::kill(process, signal);
      },
      std::chrono::seconds(60));
}

TEST_F(Cli, AnInterruptInTheMiddleOfATrainingExitsWithTheCodeOfItsSignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Finished f = interrupted_run(train("60%", "1000000000"), signal, 500);
    EXPECT_FALSE(f.timed_out) << "hangs";
    EXPECT_EQ(f.exit_code, 128 + signal) << f.err;
    // "interrupted after N iterations" where the iteration under way ends soon.
    EXPECT_THAT(f.err, AllOf(HasSubstr("interrupted"), HasSubstr("nothing was saved")));
    EXPECT_THAT(f.out, IsEmpty());
  }
}

/// As `timeout` sends a signal: to the process and to its group.
Finished interrupted_twice(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), TIDEPOOL_BINARY);
  return run_process(
      std::move(arguments),
      [&](pid_t process) {
        testing::wait_until_catches(process, SIGTERM);
        std::this_thread::sleep_for(std::chrono::milliseconds(700));
        ::kill(process, SIGTERM);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ::kill(process, SIGTERM);
      },
      std::chrono::seconds(60));
}

TEST_F(Cli, TwoSignalsWithinASecondAreOne) {
  const std::string checkpoint = folder_.file("c.ckpt");
  const std::vector<std::string> arguments{
      "train",     "tiny-vgg", "--batch",       "100",          "--data",
      "synthetic", "--link",   "1GB",           "--threads",    "1",
      "--epochs",  "100000",   "--no-evaluate", "--checkpoint", checkpoint};
  const Finished f = interrupted_twice(arguments);
  EXPECT_EQ(f.signal, 0);
  EXPECT_EQ(f.exit_code, 128 + SIGTERM) << f.err;
  EXPECT_THAT(f.err, AllOf(HasSubstr("go on with --resume"), Not(HasSubstr("ended at once"))));
  EXPECT_TRUE(std::filesystem::exists(checkpoint));
}

/// An iteration takes minutes then; it is not waited for, as nothing would be saved.
TEST_F(Cli, MoreThreadsThanCoresAreWarnedOfAndHearAnInterrupt) {
  for (const bool json : {false, true}) {
    std::vector<std::string> arguments{"train",     "tiny-vgg",  "--batch",      "512",
                                       "--data",    "synthetic", "--link",       "1GB",
                                       "--threads", "64",        "--iterations", "100000"};
    if (json) arguments.emplace_back("--json");
    const Finished f = interrupted_run(arguments, SIGINT, 1000);
    EXPECT_FALSE(f.timed_out) << "hangs";
    EXPECT_EQ(f.exit_code, 130) << f.err;
    EXPECT_THAT(f.err, HasSubstr("--threads 64 is more than the "));
    if (json) {
      const Json object = Json::parse(f.out, nullptr, false);
      ASSERT_TRUE(object.is_object()) << f.out;
      EXPECT_THAT(object["error"].get<std::string>(), HasSubstr("interrupted"));
    }
  }
}

TEST_F(Cli, AnInterruptAtTheVeryStartExitsWith130) {
  const Finished f = interrupted_run(train("60%", "1000000000"), SIGINT, 0);
  EXPECT_FALSE(f.timed_out) << "hangs";
  EXPECT_EQ(f.exit_code, 130) << f.err;
}

TEST_F(Cli, AnInterruptWithJsonStillPrintsAnObject) {
  auto arguments = train("60%", "1000000000");
  arguments.push_back("--json");
  const Finished f = interrupted_run(arguments, SIGINT, 300);
  EXPECT_EQ(f.exit_code, 130) << f.err;
  const Json object = Json::parse(f.out, nullptr, false);
  ASSERT_TRUE(object.is_object()) << f.out;
  EXPECT_EQ(object["schema"], 1);
  EXPECT_THAT(object["error"].get<std::string>(), HasSubstr("interrupted"));
  EXPECT_EQ(object.value("exit_code", 0), 130) << "the object's exit code is the process's";
}

/// A search that is stopped has a plan, which is kept; the exit code says that it was stopped.
TEST_F(Cli, AnInterruptWhilePlanningExitsWith130) {
  const std::string path = folder_.file("plan.json");
  const Finished f =
      interrupted_run({"plan", "vgg16", "--machine", "gtx1080ti", "--budget", "15%", "--planner",
                       "tide", "--time-limit", "60s", "-o", path, "--json"},
                      SIGINT, 1500);
  EXPECT_FALSE(f.timed_out) << "hangs";
  EXPECT_EQ(f.exit_code, 130) << f.err;
  EXPECT_THAT(f.err, HasSubstr("interrupted"));
  const Json object = Json::parse(f.out, nullptr, false);
  ASSERT_TRUE(object.is_object()) << f.out;
  EXPECT_EQ(object["interrupted"], true);
  EXPECT_EQ(success({"check", path})["proved"], true);
}

TEST_F(Cli, AnInterruptWhileProfilingExitsWith130) {
  const std::string path = folder_.file("profile.json");
  const Finished f =
      interrupted_run({"profile", "tiny-vgg", "--batch", "512", "--data", "synthetic", "--link",
                       "500MB", "--iterations", "1000", "-o", path},
                      SIGINT, 500);
  EXPECT_FALSE(f.timed_out) << "hangs";
  EXPECT_EQ(f.exit_code, 130) << f.err;
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace tidepool
