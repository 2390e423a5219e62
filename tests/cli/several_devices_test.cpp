// Figures and pictures of plans for several devices.
#include "base/bytes.h"
#include "support/cli_fixture.h"

namespace tidepool::testing {
namespace {

using ::testing::HasSubstr;

class SeveralDevices : public Cli {
 protected:
  using Words = std::vector<std::string>;

  static Words with(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /// On two emulated devices.
  static Words two(const char* command, const Words& more) {
    return with({command, "tiny-vgg-plain", "--batch", "32", "--data", "synthetic", "--threads",
                 "1", "--link", "500MB", "--devices", "2"},
                more);
  }
};

TEST_F(SeveralDevices, FiguresOfAPlanAreThoseOfTheWholeAndAgree) {
  const std::string path = folder_.file("two.json");
  const std::vector<std::string> arguments{
      "plan",           "mlp",   "--machine",     "k40", "--batch", "64", "--devices", "2",
      "--accumulation", "naive", "--evaluations", "200", "-o",      path, "--no-cache"};
  const Json made = success(arguments);
  const Json bytes = made["parallel"]["space_bytes"];
  EXPECT_EQ(made["footprint_bytes"], std::max(bytes[0].get<Bytes>(), bytes[1].get<Bytes>()));
  EXPECT_EQ(made["host_bytes"], bytes[2]);
  EXPECT_NEAR(
      made["parallel"]["overhead"].get<double>(),
      made["parallel"]["predicted_ms"].get<double>() / made["unlimited_ms"].get<double>() - 1,
      1e-6);
  EXPECT_EQ(success({"check", path})["footprint_bytes"], made["footprint_bytes"]);
  const Json info = success({"info", path});
  EXPECT_EQ(info["devices"], 2);
  EXPECT_EQ(info["footprint_bytes"], made["footprint_bytes"]);
  const Json drawn = success({"export", path, "-o", folder_.file("two.svg")});
  EXPECT_TRUE(drawn["periodic"].get<bool>());
  EXPECT_LE(drawn["unlimited_peak_bytes"], info["peak_bytes"]);
  EXPECT_THAT(tidepool({"bound", "--plan", path}).out, HasSubstr("bounds are not known"));
}

/// It was that of a part, without what device 0 has besides.
TEST_F(SeveralDevices, TheSmallestBudgetOfNaiveAccumulationIsEnough) {
  const Words naive{"--accumulation", "naive", "--budget"};
  const Words plan{"plan", "tiny-vgg-plain", "--machine", "k40",       "--batch",
                   "32",   "--devices",      "2",         "--planner", "modnn"};
  for (const Words& command :
       {with(two("train", {"--iterations", "1"}), naive), with(plan, naive)}) {
    const Json error = expect_error(with(command, {"1KiB"}), 4, HasSubstr("on device 0"));
    success(with(command, {error["smallest_feasible_bytes"].dump()}));
  }
}

/// Gradients that wait to be reduced were left out of it: what did for a part did not for all.
TEST_F(SeveralDevices, TheLeastHostBudgetIsEnoughForAll) {
  for (const char* accumulation : {"overlapped", "naive"}) {
    SCOPED_TRACE(accumulation);
    const Words plan{"plan",           "tiny-vgg-plain",
                     "--machine",      "k40",
                     "--batch",        "64",
                     "--devices",      "2",
                     "--budget",       "60%",
                     "--planner",      "autoswap",
                     "--evaluations",  "100",
                     "--accumulation", accumulation,
                     "--no-cache",     "--host-budget"};
    const auto need =
        success(with(Words(plan.begin(), plan.end() - 1), {}))["host_bytes"].get<Bytes>();
    const Json error = expect_error(with(plan, {std::to_string(need * 7 / 10)}), 4,
                                    HasSubstr("are enough for all"));
    EXPECT_EQ(error["smallest_feasible_space"], "host");
    const Json least = error["smallest_feasible_bytes"];
    EXPECT_LE(success(with(plan, {least.dump()}))["host_bytes"].get<Bytes>(), least.get<Bytes>());
  }
}

TEST_F(SeveralDevices, BatchNormOverAPartOfTheBatchIsSaidAndItsStatisticsAreThoseOfRounds) {
  // Where a processor has several algorithms, others choose by what each was measured to take.
  const Words train{"train",        "tiny-resnet",
                    "--batch",      "8",
                    "--data",       "synthetic",
                    "--link",       "1GB",
                    "--threads",    "1",
                    "--iterations", "1",
                    "--algorithms", "least-workspace"};
  const Words parts = with(train, {"--devices", "2", "--sub-batch-statistics"});
  const Json of_parts = success(parts);
  EXPECT_EQ(of_parts["round_statistics"], true);
  EXPECT_THAT(tidepool(parts).out, HasSubstr("a device's part, 4 samples, which changes training"));
  const Json of_rounds = success(with(train, {"--sub-batch", "4", "--sub-batch-statistics"}));
  EXPECT_EQ(of_parts["losses"], of_rounds["losses"]);
  EXPECT_EQ(of_parts["state_crc32"], of_rounds["state_crc32"]) << "running statistics, too";
  EXPECT_EQ(success(with(train, {"--sub-batch-statistics"}))["round_statistics"], false);
}

/// Rounds add gradients where they are made, by libraries or through the workspace; of several
/// devices the host adds whole ones.
TEST_F(SeveralDevices, GradientsOfPartsAreThoseOfRoundsToTheBit) {
  for (const char* model : {"mlp", "tiny-vgg-plain", "tiny-gpt", "tiny-lstm"}) {
    SCOPED_TRACE(model);
    const Words train{"train",     model, "--batch", "24",    "--data",       "synthetic",
                      "--threads", "1",   "--link",  "500MB", "--iterations", "2"};
    const Words rounds = with(train, {"--sub-batch", "12"});
    const Json parts = success(with(train, {"--devices", "2"}));
    const Json free = success(rounds);
    const Json inside = success(with(rounds, {"--budget", "97%"}));
    EXPECT_EQ(free["state_crc32"], parts["state_crc32"]);
    EXPECT_EQ(inside["state_crc32"], parts["state_crc32"]);
  }
}

TEST_F(SeveralDevices, APlanFromItsFileTrainsAsWhenItIsPlannedAtOnce) {
  for (const char* accumulation : {"overlapped", "naive"}) {
    const std::string path = folder_.file(std::string(accumulation) + ".json");
    const Words how{"--accumulation", accumulation};
    const Words planner{"--planner", "autoswap", "--budget", "80%"};
    const Json planned = success(two("plan", with(with(planner, how), {"-o", path})));
    const Json at_once = success(two("train", with(planner, how)));
    const Json from_file = success(two("train", with(how, {"--plan", path, "--no-cache"})));
    EXPECT_EQ(at_once["plan_from"], "cache");
    EXPECT_EQ(from_file["plan_from"], "file");
    EXPECT_EQ(from_file["losses"], at_once["losses"]);
    EXPECT_EQ(from_file["state_crc32"], at_once["state_crc32"]);
    EXPECT_EQ(from_file["footprint_bytes"], planned["footprint_bytes"]);
    EXPECT_EQ(from_file["predicted_ms"], planned["parallel"]["predicted_ms"]);
    EXPECT_EQ(from_file["swap_bytes"], at_once["swap_bytes"]);
    const Json verified = success(two("train", with(how, {"--plan", path, "--verify"})));
    EXPECT_TRUE(verified["identical"].get<bool>());
  }
}

TEST_F(SeveralDevices, APlanFileOfAnotherTrainingIsRefusedWithTheReason) {
  const std::string path = folder_.file("two.json");
  (void)success(two("plan", {"--planner", "autoswap", "--budget", "80%", "-o", path}));
  const auto refused = [&](Words words, int code, const char* why) {
    words.insert(words.begin(), "train");
    expect_error(with(words, {"--data", "synthetic", "--threads", "1", "--plan", path}), code,
                 HasSubstr(why));
  };
  const Words model{"tiny-vgg-plain"};
  const Words batch{"--batch", "32"};
  const Words devices{"--devices", "2"};
  refused(with(model, batch), 3, "is a plan for 2 devices, this training has 1");
  refused(with(with(model, batch), {"--devices", "4"}), 3, "is a plan for 2 devices");
  refused(with(with(model, {"--batch", "64"}), devices), 3, "is of another program");
  refused(with(with({"mlp"}, batch), devices), 3, "is of another program");
  const Words same = with(with(model, batch), devices);
  refused(with(same, {"--sub-batch", "8"}), 3, "is of another program");
  refused(with(same, {"--accumulation", "naive"}), 3, "what differs: accumulation");
  refused(with(same, {"--optimizer", "adamw"}), 3, "what differs: optimizer");
  refused(with(same, {"--budget", "60%"}), 4, "the plan needs");
  Json file = Json::parse(*read_file(path));
  file["fingerprint"] = "another device";
  ASSERT_TRUE(write_file(path, file.dump()));
  refused(same, 3, "another device");
}

TEST_F(SeveralDevices, APartThatDoesNotBelongToThePlanIsRefused) {
  const std::string path = folder_.file("two.json");
  (void)success(two("plan", {"--planner", "autoswap", "--budget", "80%", "-o", path}));
  Json file = Json::parse(*read_file(path));
  file["part"]["steady"]["instructions"].erase(0);
  ASSERT_TRUE(write_file(path, file.dump()));
  const Words train = two("train", {});
  Words without_link;
  for (std::size_t i = 0; i < train.size(); ++i) {
    if (train[i] == "--link")
      ++i;
    else
      without_link.push_back(train[i]);
  }
  expect_error(with(without_link, {"--plan", path}), 5, HasSubstr(path));
  file.erase("part");
  ASSERT_TRUE(write_file(path, file.dump()));
  expect_error(with(without_link, {"--plan", path}), 3, HasSubstr("one device's part"));
}

TEST_F(SeveralDevices, RoundsAreChosenForTheirParts) {
  // Less than a part of 64 samples takes at once in any way.
  const Words small{
      "tiny-vgg-plain", "--batch", "128",      "--data", "synthetic", "--threads", "1",
      "--link",         "500MB",   "--budget", "15%",    "--devices", "2"};
  for (const char* planner : {"modnn", "auto"}) {
    const Json chosen =
        success(with({"train"}, with(small, {"--planner", planner, "--sub-batch", "auto",
                                             "--iterations", "1", "--evaluations", "20"})));
    const auto sub_batch = chosen["sub_batch"].get<std::int64_t>();
    EXPECT_LT(sub_batch, 64) << planner;
    EXPECT_EQ(chosen["rounds"], 64 / sub_batch) << planner;
    EXPECT_LE(chosen["footprint_bytes"], chosen["budget_bytes"]);
  }
}

TEST_F(SeveralDevices, ChosenRoundsAreThoseOfThePlanAndItsFile) {
  const std::string path = folder_.file("rounds.json");
  for (const char* accumulation : {"overlapped", "naive"}) {
    const Json made =
        success({"plan", "vgg16-imagenet", "--batch", "256", "--machine", "k40", "--devices", "4",
                 "--budget", "3GB", "--planner", "modnn", "--sub-batch", "auto", "--accumulation",
                 accumulation, "--no-cache", "-o", path});
    EXPECT_LT(made["sub_batch"], 64) << accumulation;
    EXPECT_LE(made["footprint_bytes"], 3'000'000'000);
    EXPECT_EQ(tidepool({"check", path}).exit_code, 0);
    EXPECT_EQ(success({"simulate", path})["iteration_ms"], made["parallel"]["predicted_ms"]);
  }
}

}  // namespace
}  // namespace tidepool::testing
