// The built binary as a user meets it: usage, lists, files that are wrong. Nothing here asserts a
// time.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
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
  expect_error({"train", "tiny-vgg", "--batch", "1.5"}, 2,
               HasSubstr("--batch: '1.5' is not a whole number from 1 to 1048576"));
  expect_error({"train", "tiny-vgg", "--no-such-option"}, 2, HasSubstr("--no-such-option"));
  expect_error({"train", "tiny-vgg", "--data", "imagenet"}, 2, HasSubstr("--data"));
  expect_error({"train", "tiny-vgg", "--iterations", "0"}, 2, HasSubstr("--iterations"));
  expect_error({"plan"}, 2, HasSubstr("give a model"));
  expect_error({"plan", "tiny-vgg", "--machine", "k40", "--profile", "x"}, 2, HasSubstr("exclude"));
  expect_error({"simulate", "plan.json", "--iterations", "0"}, 2, HasSubstr("--iterations"));
  for (const char* option : {"--replan", "--reprofile"}) {
    expect_error({"plan", "tiny-vgg", "--no-cache", option}, 2,
                 AllOf(HasSubstr(option), HasSubstr("--no-cache")));
  }
  // They took it and kept no plan that it could be about.
  for (const char* command : {"compare", "bound", "analyse"}) {
    expect_error({command, "tiny-vgg", "--replan"}, 2, HasSubstr("unknown option '--replan'"));
  }
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
               HasSubstr("--weight-decay: '-1' is not a number of at least 0"));
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
  expect_error({"reproduce", "fig9"}, 2, HasSubstr("`tidepool-reproduce` is a program of its own"));
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
  EXPECT_THAT(tidepool({"plan", "--help"}).out, HasSubstr("(default: 10 s"));
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

TEST_F(Cli, TextAndImagesAreToldApart) {
  expect_error({"train", "tiny-gpt", "--data", "fashion-mnist"}, 2,
               HasSubstr("--data fashion-mnist has images; tiny-gpt takes text: use --data text"));
  expect_error({"train", "tiny-vgg", "--data", "text"}, 2,
               HasSubstr("--data text has text; tiny-vgg takes images"));
  expect_error({"train", "tiny-vgg", "--data", "synthetic", "--sequence", "8"}, 2,
               HasSubstr("--sequence is for models of text"));
  expect_error({"plan", "tiny-vgg", "--machine", "k40", "--sequence", "8"}, 2,
               HasSubstr("--sequence is for models of text"));
  expect_error({"train", "tiny-gpt", "--data-dir", "/no/such/folder"}, 3,
               HasSubstr("/no/such/folder: cannot open"));
  expect_error({"train", "tiny-gpt", "--sequence", "0"}, 2, HasSubstr("--sequence"));
}

TEST_F(Cli, ModelsOfTextTrainOnTextInsideABudgetBitForBit) {
  for (const char* model : {"tiny-gpt", "tiny-transformer"}) {
    const Json run =
        success({"train", model, "--batch", "32", "--budget", "70%", "--verify", "--link", "1GB",
                 "--threads", "1", "--iterations", "3", "--optimizer", "adamw", "--no-cache"});
    EXPECT_EQ(run["data"], "text") << "where nobody says which";
    EXPECT_EQ(run["identical"], true) << model;
    EXPECT_LE(run["arena_peak_bytes"], run["budget_bytes"]);
  }
}

TEST_F(Cli, TheSequenceReachesEveryCommandThatTakesAModel) {
  const auto tokens = [](const Json& program) {
    for (const Json& t : program["tensors"]) {
      if (t["name"] == "tokens") return t["bytes"].get<std::int64_t>() / 4;
    }
    return std::int64_t{0};
  };
  const std::string plan_file = folder_.file("plan.json");
  success({"plan", "tiny-gpt", "--machine", "k40", "--batch", "4", "--sequence", "12", "-o",
           plan_file, "--no-cache"});
  EXPECT_EQ(tokens(Json::parse(testing::content_of(plan_file))["program"]), 4 * 12);
  const Json profile = success({"profile", "tiny-gpt", "--batch", "4", "--sequence", "12", "--link",
                                "1GB", "--threads", "1", "--iterations", "1"});
  EXPECT_EQ(tokens(profile["program"]), 4 * 12);
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

/// For a shell, what with_short_search does; a planner of another build is not asked for.
constexpr const char* kShortSearches = R"(
tidepool() {
  case "$*" in
    *"--planner dqn"*) command tidepool planners | grep '^dqn ' | grep -qv 'not in' || return 0 ;;
    *--evaluations* | *"--plan "*) ;;
    plan* | train*) set -- "$@" --evaluations 20 --time-limit 1ns ;;
  esac
  command tidepool "$@"
}
)";

/// What is measured, is measured on a small network, and no search is long.
std::string small(std::string line) {
  const auto replace = [&line](const std::string& large, const std::string& small) {
    const std::size_t at = line.find(large);
    if (at != std::string::npos) line.replace(at, large.size(), small);
  };
  if (line.find("--data synthetic") != std::string::npos) {
    replace(" vgg16 ", " tiny-vgg ");
    replace(" unet ", " tiny-unet ");
  }
  replace(" --time-limit 2s", " --evaluations 20");
  replace(" --evaluations 20000", " --evaluations 20");
  return line;
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
    std::string script = fmt::format("set -e\ncd '{}'\nPATH='{}':$PATH\n{}", folder,
                                     binary.parent_path().string(), kShortSearches);
    int examples = 0;
    for (std::string line; std::getline(help, line);) {
      if (!line.starts_with("  tidepool ") && !line.starts_with("  printf ")) continue;
      if (line.find('#') != std::string::npos) continue;  // needs a file or minutes
      script += small(line) + "\n";
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
  EXPECT_TRUE(named(models["models"], "gpt2-small"));
  for (const Json& m : models["models"]) {
    if (m["unlimited_peak_bytes"].is_null()) {
      EXPECT_EQ(m["name"], "gpt2-small") << "a batch of 100 takes more than kernels can count";
      continue;
    }
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
  std::map<std::string, std::string> images;
  const Json listed = success({"models", "--batch", "1"});
  for (const Json& m : listed["models"]) {
    if (!m.contains("image")) {
      EXPECT_THAT(m["sample"].get<std::string>(), ::testing::EndsWith(" tokens")) << m["name"];
      EXPECT_GT(m["unlimited_peak_bytes"], m["smallest_feasible_bytes"]);
      continue;
    }
    EXPECT_EQ(m["sample"], m["image"]);
    images[m["name"]] = m["image"];
    if (m["name"].get<std::string>().starts_with("tiny-")) {
      EXPECT_EQ(m["image"], "3x8x8") << m["name"];
    }
  }
  EXPECT_EQ(images["vgg16"], "3x32x32");
  EXPECT_EQ(images["resnet101-cifar"], "3x32x32");
  EXPECT_EQ(images["mobilenet"], "3x32x32");
  EXPECT_EQ(images["resnet18"], "3x224x224");
  EXPECT_EQ(images["inceptionv3"], "3x299x299");
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

}  // namespace
}  // namespace tidepool
