// compare and bound, and what they say of each other; trainings in rounds.
#include <fmt/format.h>

#include <map>
#include <sstream>

#include "support/cli_fixture.h"
#include "support/terminal.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::Cli;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::Not;

using Arguments = std::vector<std::string>;

class CompareTest : public testing::Cli {
 protected:
  static Arguments tiny(const std::string& command, Arguments more) {
    Arguments a{command, "tiny-vgg", "--batch", "32", "--machine", "gtx1080ti"};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
};

TEST_F(CompareTest, ASweepIsNeverSlowerWithMoreMemory) {
  const Json j = success(testing::with_gap(
      tiny("compare", {"--sweep", "90%,40%,60%,100%", "--planners", "autoswap,tide,none"})));
  ASSERT_EQ(j["rows"].size(), 12U);
  std::map<std::string, double> last;
  std::map<std::pair<std::int64_t, std::string>, double> times;
  for (const Json& row : j["rows"]) {
    const std::string planner = row["planner"];
    if (!row["feasible"]) {
      EXPECT_EQ(planner, "none");
      EXPECT_THAT(row["error"].get<std::string>(), HasSubstr("needs"));
      continue;
    }
    EXPECT_LE(row["footprint_bytes"], row["budget_bytes"]);
    const double time = row["time_ms"];
    if (last.contains(planner)) {
      EXPECT_LE(time, last[planner]);
    }
    last[planner] = time;
    times[{row["budget_bytes"], planner}] = time;
    EXPECT_GE(row["optimality_gap"].get<double>(), -1e-9) << "nothing beats the bound";
    EXPECT_GE(row["overhead"].get<double>() + 1e-9, row["optimality_gap"].get<double>());
  }
  for (const auto& [key, time] : times) {
    if (key.second == "tide") {
      EXPECT_LE(time, (times[{key.first, "autoswap"}]));
    }
  }
}

TEST_F(CompareTest, PlansAreMeasuredInTurnOnThisDevice) {
  const Arguments on_device{"compare",    "tiny-vgg",      "--batch",       "32",
                            "--data",     "synthetic",     "--budget",      "50%,70%",
                            "--planners", "tide,autoswap", "--evaluations", "100"};
  auto measured = on_device;
  measured.emplace_back("--measure");
  const Json both = success(measured);
  for (const Json& row : both["rows"]) {
    EXPECT_GT(row["measured_ms"], 0);
    EXPECT_EQ(row["measured_iterations"], 9);
    EXPECT_FALSE(row["prediction_error"].is_null());
  }
  // A plan by what they took, unless it is slower by these times than the fastest of them.
  for (const Json& row : both["corrected"]) {
    EXPECT_EQ(row["planner"], "auto");
    EXPECT_EQ(row["measured_iterations"], 9);
    EXPECT_EQ(row["in_turn_with"]["measured_iterations"], 9);
    EXPECT_GT(row["time_ms"], 0);
  }
  EXPECT_THAT(tidepool(measured).out, AllOf(HasSubstr("measured on this device, in turn"),
                                            AnyOf(HasSubstr("\ncorrected: what auto plans"),
                                                  HasSubstr("\nno corrected plan: "))));
  for (const Json& row : success(on_device)["rows"]) EXPECT_TRUE(row["measured_ms"].is_null());
  const testing::Finished nothing_to_run =
      tidepool({"compare", "tiny-vgg", "--batch", "32", "--data", "synthetic", "--budget", "50%",
                "--planners", "none", "--measure"});
  EXPECT_THAT(nothing_to_run.out, Not(HasSubstr("measured on this device")));
  expect_error(tiny("compare", {"--budget", "50%", "--measure"}), 2,
               HasSubstr("leave out --machine"));
}

TEST_F(CompareTest, ASecondPlanForABudgetIsNotThatOfASmallerOne) {
  const Json j = success(
      tiny("compare", {"--budget", "50%,60%", "--planners", "tide,tide", "--time-limit", "200ms"}));
  ASSERT_EQ(j["rows"].size(), 4U);
  const auto small = j["rows"][0]["budget_bytes"];
  for (const Json& row : j["rows"]) {
    if (row["budget_bytes"] != small) continue;
    EXPECT_EQ(row["from_smaller_budget"], false);
  }
}

TEST_F(CompareTest, PlansInTheMemoryOfTheProcessAreMeasuredToo) {
  const testing::TemporaryFolder folder;
  const Json j = success({"compare",      "tiny-vgg-plain",
                          "--batch",      "2000",
                          "--sub-batch",  "2000",
                          "--data",       "synthetic",
                          "--algorithms", "least-workspace",
                          "--threads",    "1",
                          "--memory",     "60MiB",
                          "--spill",      folder.path(),
                          "--planners",   "tide,autoswap",
                          "--measure",    "--evaluations",
                          "100"});
  ASSERT_EQ(j["rows"].size(), 2U);
  for (const Json& row : j["corrected"]) EXPECT_EQ(row["measured_iterations"], 9);
  for (const Json& row : j["rows"]) {
    EXPECT_GT(row["swap_bytes"], 0);
    EXPECT_EQ(row["measured_iterations"], 9);
    EXPECT_LE(row["least_measured_ms"], row["measured_ms"]);
    EXPECT_LE(row["measured_ms"], row["most_measured_ms"]);
  }
}

TEST_F(CompareTest, WhereEverythingFitsThereIsNoGapAndLongNamesHaveRoom) {
  const Arguments arguments =
      tiny("compare", {"--budget", "150%", "--planners", "autoswap-published,none"});
  const Json again = success(arguments);
  for (const Json& row : again["rows"]) EXPECT_EQ(row["optimality_gap"], 0.0);
  const testing::Finished text = tidepool(arguments);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  std::size_t end = 0;  // of the column after the names
  std::istringstream lines(text.out);
  for (std::string line; std::getline(lines, line);) {
    for (const char* name : {" autoswap-published ", " none "}) {
      const std::size_t at = line.find(name);
      if (at == std::string::npos) continue;
      const std::size_t here = line.find("iB", at);
      if (end == 0) end = here;
      EXPECT_EQ(here, end) << text.out;
    }
  }
  EXPECT_GT(end, 0U) << text.out;
}

TEST_F(CompareTest, ThePlotShowsEveryRowOverTheBound) {
  const std::string plot = folder_.file("curve.svg");
  const Json j = success(
      tiny("compare", {"--sweep", "40%,60%", "--planners", "autoswap,none", "--plot", plot}));
  EXPECT_EQ(j["plot"], plot);
  for (const Json& row : j["rows"]) EXPECT_FALSE(row["least_overhead"].is_null());
  const auto svg = read_file(plot);
  ASSERT_TRUE(svg) << svg.error().message;
  EXPECT_THAT(*svg, AllOf(HasSubstr("<title>autoswap: "), HasSubstr("none: no plan"),
                          HasSubstr("proven bound"), HasSubstr("</svg>")));
}

/// It looked like a plan of the planner's own.
TEST_F(CompareTest, ARowThatStreamsSaysSo) {
  const std::string plot = folder_.file("curve.svg");
  const Arguments arguments =
      tiny("compare", {"--budget", "30%", "--planners", "vdnn-all,autoswap", "--plot", plot});
  const Json j = success(arguments);
  EXPECT_EQ(j["rows"][0]["streaming"], true);
  EXPECT_EQ(j["rows"][1]["streaming"], false);
  const auto svg = read_file(plot);
  ASSERT_TRUE(svg);
  EXPECT_THAT(*svg, AllOf(HasSubstr("hollow"), HasSubstr("% (streams) at ")));
  std::istringstream lines(tidepool(arguments).out);
  for (std::string line; std::getline(lines, line);) {
    const bool streams = line.find(" vdnn-all ") != std::string::npos;
    EXPECT_EQ(line.ends_with("  streams"), streams) << line;
  }
}

/// Said before planning, which may take long; nothing is left behind.
TEST_F(CompareTest, APlotThatCannotBeWrittenIsSaidAtOnce) {
  const auto with = [&](const std::string& plot) {
    return tiny("compare", {"--budget", "60%", "--planners", "autoswap", "--plot", plot});
  };
  expect_error(with(folder_.file("curve.pdf")), 2, HasSubstr("must end in .svg, .html or .png"));
  expect_error(with(folder_.file("absent/curve.svg")), 1, HasSubstr("absent/curve.svg: cannot"));
  const std::string program = write("program.svg", "{}");
  expect_error({"compare", "--program", program, "--machine", "gtx1080ti", "--plot", program}, 2,
               HasSubstr("is what is read"));
}

TEST_F(CompareTest, UnknownPlannersAndBudgetsAreErrors) {
  expect_error(tiny("compare", {"--planners", "autoswap,best"}), 2, HasSubstr("'best'"));
  expect_error(tiny("compare", {"--budget", "60%..30%"}), 2, HasSubstr("smaller one"));
  expect_error({"compare"}, 2, HasSubstr("give a model"));
}

TEST_F(CompareTest, ASweepGoesOnAfterABudgetThatCannotBeMet) {
  const Arguments sweep =
      tiny("compare", {"--sweep", "1%..61%:20%", "--planners", "autoswap,none"});
  const Json j = success(sweep);
  ASSERT_EQ(j["rows"].size(), 8U);
  EXPECT_EQ(j["rows"][0]["feasible"], false);
  const std::int64_t smallest = j["rows"][0]["smallest_feasible_bytes"];
  EXPECT_EQ(j["rows"][6]["feasible"], true) << "autoswap at 61 %";
  EXPECT_EQ(success(tiny("plan", {"--budget", std::to_string(smallest)}))["budget_bytes"],
            smallest);
  const testing::Finished text = tidepool(sweep);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr(fmt::format("infeasible: the smallest budget is ")));
  EXPECT_THAT(text.out, HasSubstr(fmt::format("({} B)", smallest)));
}

/// They were an error of the last of them.
TEST_F(CompareTest, BudgetsThatCannotBeMetAreRowsEvenWhereNoneCan) {
  const Arguments here{"compare",   "tiny-vgg", "--batch",    "32",        "--data",
                       "synthetic", "--link",   "500MB",      "--threads", "1",
                       "--budget",  "1B,2B",    "--planners", "autoswap"};
  for (const Arguments& arguments :
       {tiny("compare", {"--budget", "1B,2B", "--planners", "autoswap"}), here}) {
    const testing::Finished text = tidepool(arguments);
    EXPECT_EQ(text.exit_code, 4) << text.err;
    EXPECT_THAT(text.out, AllOf(HasSubstr("1 B  autoswap"), HasSubstr("2 B  autoswap")));
    EXPECT_THAT(text.err, HasSubstr("tidepool: budget 2 B"));
    Arguments with_json = arguments;
    with_json.emplace_back("--json");
    const testing::Finished f = tidepool(with_json);
    EXPECT_EQ(f.exit_code, 4) << f.err;
    const Json j = Json::parse(f.out, nullptr, false);
    ASSERT_TRUE(j.is_object()) << f.out;
    ASSERT_EQ(j["rows"].size(), 2U);
    EXPECT_EQ(j["exit_code"], 4);
    EXPECT_EQ(j["smallest_feasible_bytes"], j["rows"][0]["smallest_feasible_bytes"]);
  }
}

TEST_F(CompareTest, AnInterruptKeepsTheRowsThatAreFinished) {
  const testing::Finished f = testing::interrupted_in_terminal(
      {TIDEPOOL_BINARY, "compare", "vgg16", "--machine", "gtx1080ti", "--budget", "25%",
       "--planners", "autoswap,none,tide", "--time-limit", "60s", "--json"},
      "  tide in ");
  EXPECT_EQ(f.exit_code, 130) << f.out;
  const Json j = Json::parse(testing::object_in(f.out), nullptr, false);
  ASSERT_TRUE(j.is_object()) << f.out;
  EXPECT_EQ(j["interrupted"], true);
  EXPECT_EQ(j["rows"].size(), 2U) << "tide searches for a minute";
}

/// As text "100%" is less than "60%". What is measured is measured inside the least of them.
TEST_F(CompareTest, TheLeastOfSeveralBudgetsIsFoundByItsBytes) {
  const Json j =
      success({"compare", "tiny-vgg", "--batch", "500", "--data", "synthetic", "--link", "500MB",
               "--threads", "1", "--planners", "autoswap", "--budget", "100%,60%,1%"});
  ASSERT_EQ(j["rows"].size(), 3U);
  EXPECT_EQ(j["rows"][0]["feasible"], false);
  const std::int64_t least = j["rows"][1]["budget_bytes"];
  EXPECT_EQ(j["profile"]["reactive"], true);
  EXPECT_LE(j["profile"]["arena_peak_bytes"], least);
}

TEST_F(CompareTest, OverheadIsOneDefinitionInEveryCommand) {
  const std::string file = folder_.file("plan.json");
  for (const char* planner : {"autoswap", "random"}) {
    const Json plan = success(tiny("plan", {"--budget", "50%", "--planner", planner, "-o", file}));
    const double overhead =
        plan["predicted_ms"].get<double>() / plan["unlimited_ms"].get<double>() - 1;
    EXPECT_NEAR(plan["predicted_overhead"].get<double>(), overhead, 1e-9) << planner;
    const Json row =
        success(tiny("compare", {"--budget", "50%", "--planners", planner}))["rows"][0];
    EXPECT_NEAR(row["overhead"].get<double>(), overhead, 1e-9) << planner;
    EXPECT_EQ(row["unlimited_ms"], plan["unlimited_ms"]) << planner;
    const Json simulated = success({"simulate", file});
    EXPECT_NEAR(simulated["overhead"].get<double>(), overhead, 1e-9) << planner;
    EXPECT_EQ(simulated["unlimited_ms"], plan["unlimited_ms"]) << planner;
    const Json bound = success({"bound", "--plan", file});
    EXPECT_EQ(bound["unlimited_ms"], plan["unlimited_ms"]) << planner;
    if (bound.contains("plan_overhead")) {
      EXPECT_NEAR(bound["plan_overhead"].get<double>(), overhead, 1e-9) << planner;
    }
  }
  const Json everything = success(tiny("plan", {"--budget", "150%"}));
  EXPECT_NEAR(everything["predicted_overhead"].get<double>(), 0, 1e-3)
      << "a budget that everything fits costs nothing";
}

TEST_F(CompareTest, BoundOfAPlanIsItsGap) {
  const std::string file = folder_.file("plan.json");
  const Json plan = success(tiny("plan", {"--budget", "50%", "-o", file}));
  const Json bound = success({"bound", "--plan", file});
  EXPECT_EQ(bound["budget_bytes"], plan["budget_bytes"]);
  EXPECT_NEAR(bound["plan_overhead"].get<double>(), plan["predicted_overhead"].get<double>(), 1e-9);
  EXPECT_NEAR(bound["optimality_gap"].get<double>(),
              bound["plan_overhead"].get<double>() - bound["least_overhead"].get<double>(), 1e-9);
  EXPECT_GE(bound["optimality_gap"].get<double>(), 0);
  EXPECT_LT(bound["least_load_without_overhead_bytes"], bound["unlimited_peak_bytes"]);
  const Json same = success(tiny("bound", {"--budget", "50%"}));
  EXPECT_EQ(same["least_overhead_ms"], bound["least_overhead_ms"]);
}

TEST_F(CompareTest, ABoundThatTakesLongerThanItsTimeLimitIsThatOfTheOpThatBinds) {
  const Arguments resnet18{"bound",    "resnet18", "--machine",    "gtx1080ti",
                           "--budget", "35%",      "--time-limit", "1ms"};
  const Json bound = success(resnet18);
  EXPECT_EQ(bound["bound_stopped"], true);
  EXPECT_TRUE(bound["bound_refused"].is_null());
  EXPECT_EQ(bound["bound"], "binding op");
  EXPECT_GT(bound["least_overhead_swapping"], 0.15);
  EXPECT_GT(bound["least_overhead"], 0.01);
  EXPECT_TRUE(bound["least_load_without_overhead_bytes"].is_null());
  const testing::Finished text = tidepool(resnet18);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("by the op that needs most memory; more time (--time-limit)"),
                    HasSubstr("no time was left")));
  const Json enough = success(tiny("bound", {"--budget", "50%", "--time-limit", "1min"}));
  EXPECT_EQ(enough["bound_stopped"], false);
  EXPECT_EQ(enough["bound"], "fluid");
  EXPECT_TRUE(enough["bound_refused"].is_null());
  EXPECT_FALSE(enough["least_overhead"].is_null());
  expect_error({"bound", "vgg16", "--time-limit", "0"}, 2, HasSubstr("--time-limit"));
}

TEST_F(CompareTest, RowsSayWhetherTheBoundWasStopped) {
  Arguments compare{"compare", "vgg16",      "--machine", "gtx1080ti",    "--budget",
                    "40%",     "--planners", "autoswap",  "--time-limit", "1ms"};
  const Json row = success(compare)["rows"][0];
  EXPECT_GE(row["optimality_gap"], 0);
  EXPECT_EQ(row["bound_stopped"], true);
  EXPECT_THAT(tidepool(compare).out, HasSubstr("more time (--time-limit) may prove more"));
  const Json known = success(
      testing::with_gap(tiny("compare", {"--budget", "50%", "--planners", "autoswap"})))["rows"][0];
  EXPECT_EQ(known["bound_stopped"], false);
}

TEST_F(CompareTest, WhyThereIsNoBoundForAProgramOfTwoDevicesIsSaid) {
  const auto plan = read_file(TIDEPOOL_TEST_DATA "/peer.plan.json");
  ASSERT_TRUE(plan) << plan.error().message;
  Json parts = Json::parse(*plan);
  parts["program"]["ops"].back()["device"] = 1;
  const std::string program = write("program.json", parts["program"].dump());
  const std::string machine = write("machine.json", parts["machine"].dump());
  const std::string why = "op 'b' runs on device 1: the bound is for one device";
  for (const std::string command : {"bound", "compare"}) {
    const Arguments arguments{command, "--program", program, "--machine", machine};
    const bool bound = command == "bound";
    Arguments as_json = arguments;
    as_json.emplace_back("--json");
    const auto f = tidepool(as_json);
    EXPECT_EQ(f.exit_code, bound ? 0 : 3) << "plans are made for one device";
    const Json json = Json::parse(f.out);
    EXPECT_TRUE(json["unlimited_ms"].is_null());
    const Json& said = bound ? json : json["rows"][0];
    EXPECT_EQ(said["bound_refused"], why);
    EXPECT_EQ(said["bound_stopped"], false);
    EXPECT_THAT(tidepool(arguments).out, HasSubstr(why));
  }
}

/// It exited with 0 where only the planners found that nothing fits.
TEST_F(CompareTest, WhereNoPlannerHasAPlanTheExitCodeIs4) {
  const auto f = tidepool(tiny("compare", {"--budget", "60%", "--planners", "none", "--json"}));
  EXPECT_EQ(f.exit_code, 4);
  const Json error = Json::parse(f.out);
  EXPECT_THAT(error["error"].get<std::string>(), HasSubstr("no plan"));
  EXPECT_EQ(error["smallest_feasible_bytes"], error["rows"][0]["smallest_feasible_bytes"]);
}

TEST_F(CompareTest, EverySpaceOfAPlanIsShown) {
  const std::string plan = TIDEPOOL_TEST_DATA "/peer.plan.json";
  const Json moved = success({"simulate", plan});
  EXPECT_EQ(moved["copied"].size(), 3U);
  EXPECT_EQ(moved["copied_out_bytes"], 2 << 20);
  EXPECT_EQ(moved["copied_in_bytes"], (2 << 20) + 512);
  EXPECT_THAT(tidepool({"simulate", plan}).out, HasSubstr("1.0 MiB from device 1 to device 0"));
  const Json proved = success({"check", plan});
  ASSERT_EQ(proved["spaces"].size(), 3U);
  EXPECT_EQ(proved["spaces"][1]["name"], "device 1");
  EXPECT_TRUE(proved["spaces"][2]["budget_bytes"].is_null());
  EXPECT_THAT(tidepool({"check", plan}).out, HasSubstr("device 1 1.0 MiB of 1.0 MiB"));
}

/// The time of a plan is its own, whatever its file says; a plan that recomputes is not judged.
TEST_F(CompareTest, BoundOfAPlanJudgesThePlanAndNotWhatItsFileSaysOfIt) {
  const std::string file = folder_.file("plan.json");
  success(tiny("plan", {"--budget", "50%", "-o", file}));
  const Json before = success({"bound", "--plan", file});
  Json edited = Json::parse(*read_file(file));
  edited["predicted_ns"] = 1;
  ASSERT_TRUE(write_file(file, edited.dump()));
  const Json after = success({"bound", "--plan", file});
  EXPECT_EQ(after["optimality_gap"], before["optimality_gap"]);
  success(tiny("plan", {"--budget", "50%", "--planner", "random", "--seed", "3", "-o", file}));
  const Json recomputes = success({"bound", "--plan", file});
  EXPECT_GT(recomputes["optimality_gap"], 0);
  EXPECT_LE(recomputes["least_overhead"], recomputes["least_overhead_swapping"]);
}

/// The linear program takes seconds.
TEST_F(CompareTest, AnInterruptEndsTheLinearProgram) {
  for (const char* command : {"bound", "compare"}) {
    const testing::Finished f =
        tidepool({command, "resnet50-cifar", "--machine", "gtx1080ti", "--budget", "40%",
                  "--time-limit", "10min"},
                 [](pid_t process) {
                   testing::wait_until_catches(process, SIGINT);
                   std::this_thread::sleep_for(std::chrono::milliseconds(300));
                   ::kill(process, SIGINT);
                 });
    EXPECT_EQ(f.exit_code, 130) << command << f.out << f.err;
    EXPECT_THAT(f.err, HasSubstr("interrupted"));
  }
}

TEST_F(CompareTest, ATrainingHasTheGapOfItsPlan) {
  const Arguments train{"train",  "tiny-vgg", "--batch",   "16", "--data",   "synthetic",
                        "--link", "500MB",    "--threads", "1",  "--budget", "50%"};
  const Json j = success(testing::with_gap(train));
  // Copies of inputs may overlap; what share of an iteration they are depends on the kernels.
  EXPECT_GT(j["least_overhead"].get<double>(), -0.5);
  EXPECT_GE(j["optimality_gap"].get<double>(), -1e-9) << "nothing beats the bound";
  const testing::Finished text = tidepool(testing::with_gap(train));
  EXPECT_THAT(text.out, HasSubstr("\n  optimality gap ")) << text.err;

  Arguments unlimited = train;
  unlimited.back() = "100%";
  EXPECT_LE(success(testing::with_gap(unlimited))["least_overhead"], 0.0);
}

TEST_F(CompareTest, TrainingInRoundsIsIdenticalInsideABudget) {
  const Arguments train{"train",    "tiny-vgg", "--batch",      "20",     "--sub-batch",
                        "8",        "--data",   "synthetic",    "--link", "500MB",
                        "--budget", "50%",      "--iterations", "3",      "--verify"};
  expect_error(train, 2, AllOf(HasSubstr("batch norm"), HasSubstr("--sub-batch-statistics")));
  Arguments allowed = train;
  allowed.emplace_back("--sub-batch-statistics");
  const Json j = success(allowed);
  EXPECT_EQ(j["identical"], true);
  EXPECT_LE(j["arena_peak_bytes"], j["budget_bytes"]);
}

TEST_F(CompareTest, RandomStrategiesRecomputeAndStayIdentical) {
  const Json j =
      success({"train",     "tiny-resnet",  "--batch",  "16",  "--data",       "synthetic",
               "--link",    "500MB",        "--budget", "60%", "--iterations", "3",
               "--planner", "random",       "--seed",   "4",   "--verify",     "--evaluations",
               "40000",     "--time-limit", "10min"});
  EXPECT_EQ(j["identical"], true);
  EXPECT_GT(j["recomputed_ops"], 0);
  EXPECT_GT(j["optimality_gap"], 0) << "the bound covers recomputation";
  EXPECT_LE(j["arena_peak_bytes"], j["budget_bytes"]);
}

// ---- three tiers

TEST_F(Cli, AComparisonOverThreeTiersHasThePlansOfPlan) {
  const std::vector<std::string> tiers{"tiny-vgg",  "--machine",     "gtx1080ti", "--budget",
                                       "40%",       "--host-budget", "600KiB",    "--file-tier",
                                       "2.5GB,3GB", "--evaluations", "200"};
  const auto with = [&](std::vector<std::string> arguments, std::vector<std::string> more) {
    arguments.insert(arguments.end(), tiers.begin(), tiers.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const Json all = success(with({"compare"}, {"--planners", "autoswap,tide"}));
  ASSERT_EQ(all["rows"].size(), 2U);
  for (const Json& row : all["rows"]) {
    const std::string planner = row["planner"];
    const std::string path = folder_.file(planner + ".json");
    const Json plan = success(with({"plan"}, {"--planner", planner, "-o", path}));
    EXPECT_EQ(row["time_ms"], plan["predicted_ms"]) << planner;
    EXPECT_EQ(row["written_bytes"], plan["written_bytes"]) << planner;
    EXPECT_EQ(row["written_bytes"], success({"simulate", path})["written_bytes"]) << planner;
    EXPECT_GT(row["written_bytes"], 0) << planner;
    EXPECT_LE(row["least_overhead"], row["overhead"]) << planner;
  }
}

TEST_F(Cli, AComparisonWithoutHostMemoryEnoughSaysWhatIsEnough) {
  const Finished f = tidepool({"compare", "tiny-vgg", "--machine", "gtx1080ti", "--budget", "40%",
                               "--host-budget", "4KiB", "--planners", "autoswap"});
  EXPECT_EQ(f.exit_code, 4);
  EXPECT_THAT(f.out, AllOf(HasSubstr("host"), HasSubstr("enough")));
  EXPECT_THAT(f.out, Not(HasSubstr("the smallest budget is")));
  expect_error({"compare", "tiny-vgg", "--machine", "gtx1080ti", "--host-budget", "1GB",
                "--file-tier", "measured"},
               2, HasSubstr("--machine"));
}

}  // namespace
}  // namespace tidepool
