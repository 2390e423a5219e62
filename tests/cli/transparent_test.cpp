// The built binary trains through a Session.
#include <filesystem>

#include "base/bytes.h"
#include "support/cli_fixture.h"
#include "support/terminal.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::Cli;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::run_process;

std::vector<std::string> transparent(std::vector<std::string> more) {
  std::vector<std::string> arguments{
      "train",     "tiny-vgg", "--transparent", "--batch",   "16", "--data",
      "synthetic", "--link",   "500MB",         "--threads", "1",  "--evaluations",
      "50"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_F(Cli, TransparentTrainingReportsWhatItFound) {
  const auto arguments =
      transparent({"--budget", "60%", "--iterations", "6", "--verify", "--planner", "autoswap"});
  const Json j = success(arguments);
  EXPECT_EQ(j["model"], "tiny-vgg");
  EXPECT_EQ(j["transparent"], true);
  EXPECT_EQ(j["planner"], "autoswap");
  EXPECT_EQ(j["iterations"], 6);
  EXPECT_EQ(j["identical"], true);
  EXPECT_EQ(j["planned_iterations"], 3);
  EXPECT_EQ(j["planned_share"], 0.5);
  EXPECT_EQ(j["first_planned_iteration"], 4);
  EXPECT_EQ(j["losses"].size(), 6U);
  EXPECT_LE(j["arena_peak_bytes"], j["budget_bytes"]);
  for (const char* field : {"unplanned_ms", "planned_ms", "predicted_ms", "unlimited_ms",
                            "planning_ms", "moved_bytes"}) {
    EXPECT_GT(j.value(field, 0.0), 0) << field;
  }
  EXPECT_GE(j.value("stalled_ms", -1.0), 0);
  EXPECT_TRUE(j["why_no_plan"].is_null());
  const Finished text = tidepool(arguments);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("op by op"), HasSubstr("planned    3 of 6 iterations"),
                    HasSubstr("on a plan (predicted"), HasSubstr("identical  yes"),
                    HasSubstr(fmt::format("crc32 {:08x}", j["state_crc32"].get<std::uint32_t>()))));
}

/// The same bits as the static runtime, which is another way to the same training.
TEST_F(Cli, TransparentTrainingEndsInTheStateOfATrainingWithAPlan) {
  const Json through = success(transparent({"--budget", "60%", "--iterations", "3"}));
  const Json planned =
      success({"train", "tiny-vgg", "--batch", "16", "--data", "synthetic", "--link", "500MB",
               "--threads", "1", "--iterations", "3", "--planner", "none"});
  EXPECT_EQ(through["state_crc32"], planned["state_crc32"]);
  EXPECT_EQ(through["losses"], planned["losses"]);
  EXPECT_TRUE(through["planned_ms"].is_null());
  EXPECT_TRUE(through["identical"].is_null());
}

TEST_F(Cli, TransparentRefusesWhatMeansNothingToIt) {
  const std::vector<std::vector<std::string>> pairs{
      {"--plan", "x.json"}, {"--profile", "x.json"}, {"--graph", "2"},
      {"--devices", "2"},   {"--sub-batch", "auto"}, {"--algorithms", "fastest"},
      {"--epochs", "1"},    {"--no-trials"},         {"--replan"}};
  for (const std::vector<std::string>& more : pairs) {
    SCOPED_TRACE(more[0]);
    std::vector<std::string> arguments{"train", "tiny-vgg", "--transparent", "--data", "synthetic"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"--budget", "60%"});
    expect_error(arguments, 2, AllOf(HasSubstr("--transparent"), HasSubstr(more[0])));
  }
  expect_error(transparent({}), 2, AllOf(HasSubstr("--budget"), HasSubstr("--memory")));
}

/// The limit of a kernel is tested in tests/cgroup.
TEST_F(Cli, TransparentTrainingInTheMemoryOfTheProcessSaysWhatItTook) {
  const std::vector<std::string> arguments{"train",
                                           "vgg11",
                                           "--transparent",
                                           "--batch",
                                           "8",
                                           "--sub-batch",
                                           "8",
                                           "--data",
                                           "synthetic",
                                           "--threads",
                                           "1",
                                           "--memory",
                                           "120MiB",
                                           "--spill",
                                           ".",
                                           "--no-cache",
                                           "--spill-speed",
                                           "2GB,2GB",
                                           "--iterations",
                                           "4",
                                           "--evaluations",
                                           "50"};
  const Json j = success(arguments);
  EXPECT_EQ(j["planned_iterations"], 1);
  EXPECT_TRUE(j["link_bytes_per_second"].is_null());
  const Json& memory = j["memory"];
  EXPECT_EQ(memory["limit_bytes"], 120 * kMiB);
  EXPECT_LT(j["budget_bytes"].get<Bytes>() + memory["resident_bytes"].get<Bytes>(), 120 * kMiB);
  EXPECT_GT(memory["written_bytes"], 0);
  EXPECT_GT(memory["read_bytes"], 0);
  EXPECT_GT(memory["file_bytes"], 0);
  const Finished text = tidepool(arguments);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("memory     120.0 MiB for the process: arena"),
                              HasSubstr("spill      "), HasSubstr("wear       "),
                              HasSubstr("planned    1 of 4 iterations")));
}

TEST_F(Cli, AnInterruptEndsATransparentTraining) {
  for (const int settle_ms : {0, 700}) {
    auto arguments = transparent({"--budget", "60%", "--iterations", "1000000000"});
    arguments.insert(arguments.begin(), TIDEPOOL_BINARY);
    const Finished f = run_process(std::move(arguments), [&](pid_t process) {
      testing::wait_until_catches(process, SIGINT);
      std::this_thread::sleep_for(std::chrono::milliseconds(settle_ms));
      ::kill(process, SIGINT);
    });
    EXPECT_FALSE(f.timed_out) << "hangs";
    EXPECT_EQ(f.exit_code, 130) << f.err;
    EXPECT_THAT(f.err, AllOf(HasSubstr("interrupted"), HasSubstr("nothing was saved")));
    EXPECT_THAT(f.out, IsEmpty());
  }
}

}  // namespace
}  // namespace tidepool
