// Training in a stated amount of RAM with a file behind it, inside a control group that allows no
// more and no swap: the limit is the kernel's. Skipped where no such group can be made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "limit_fixture.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;

TEST_F(Limit, HoldsWhereUnlimitedTrainingIsKilled) {
  make(120 * kMiB);
  if (IsSkipped()) return;
  const Arguments all = training("vgg11", "8", {"--iterations", "1"});
  const Json inside = expect_inside(all);
  // Convolutions take less workspace on some processors than on others.
  EXPECT_GT(
      inside["unlimited_peak_bytes"].get<Bytes>() + inside["memory"]["resident_bytes"].get<Bytes>(),
      group().limit());
  const Json free = outside(all);
  EXPECT_EQ(inside["state_crc32"], free["state_crc32"]);

  const Finished killed = group().run(unlimited(all));
  EXPECT_EQ(killed.signal, SIGKILL) << killed.out << killed.err;
  EXPECT_NE(group().killed(), 0);  // the kernel counts, where it does
  EXPECT_NE(group().times_full(), 0);
}

TEST_F(Limit, MoreThanTheGroupAllowsIsRefused) {
  make(120 * kMiB);
  if (IsSkipped()) return;
  const Finished refused =
      group().run(training("vgg16", "8", {"--memory", "1GiB", "--spill", spill_folder()}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.out, HasSubstr("the kernel would end the training"));
}

/// The smallest rounds of a large batch would be programs that take more than that.
TEST_F(Limit, TooLittleForALargeBatchIsRefusedInside) {
  make(62 * kMiB);
  if (IsSkipped()) return;
  const Finished refused =
      group().run(limited({TIDEPOOL_BINARY, "train", "mlp", "--data", "synthetic", "--batch",
                           "4000", "--iterations", "1", "--threads", "2", "--no-cache", "--json"}));
  EXPECT_EQ(refused.exit_code, 4) << refused.out << refused.err;
  EXPECT_LE(group().killed(), 0);
  EXPECT_LE(group().highest(), group().limit());
}

TEST_F(Limit, WeightsAndOptimizerStateAloneMayBeMoreThanTheMemory) {
  make(120 * kMiB);
  if (IsSkipped()) return;
  const Arguments all = training(
      "mlp-deep", "16", {"--iterations", "2", "--optimizer", "adamw", "--learning-rate", "0.001"});
  const Json inside = expect_inside(all);
  EXPECT_EQ(inside["state_crc32"], outside(all)["state_crc32"]);
}

TEST_F(Limit, HoldsThroughEpochsEvaluationsAndCheckpoints) {
  make(100 * kMiB);
  if (IsSkipped()) return;
  const std::string checkpoint = folder_.path() + "/training.ckpt";
  const auto epochs = [](const char* count, Arguments more) {
    more.insert(more.end(), {"--epochs", count});
    return training("tiny-squeezenet", "5000", more);  // two iterations an epoch
  };
  expect_inside(epochs("1", {"--checkpoint", checkpoint}));
  const Json resumed = expect_inside(epochs("2", {"--resume", checkpoint}));
  const Json free = outside(epochs("2", {}));
  EXPECT_EQ(resumed["state_crc32"], free["state_crc32"]);
  EXPECT_EQ(resumed["epochs"].back()["accuracy"], free["epochs"].back()["accuracy"]);
}

std::ptrdiff_t plans_that_ran(const Json& training) {
  if (!training.is_object() || training["trials"].is_null()) return 0;
  return std::ranges::count_if(training["trials"]["plans"], [](const Json& plan) {
    return plan["measured_iterations"].get<int>() > 0;
  });
}

/// Planning between iterations, with the device closed, and every plan that is tried.
TEST_F(Limit, HoldsWhilePlansTakeTurns) {
  make(120 * kMiB);
  if (IsSkipped()) return;
  const Arguments all = training("vgg11", "8", {"--iterations", "16"});
  Json inside;
  // On a busy machine it may be that no other plan seems worth a trial.
  constexpr int kMost = 4;
  for (int i = 0; i < kMost && plans_that_ran(inside) < 2; ++i) inside = expect_inside(all);
  EXPECT_GE(plans_that_ran(inside), 2) << inside["trials"];
  EXPECT_EQ(inside["memory"]["exceeded"], false);
  Arguments one_plan = all;
  one_plan.emplace_back("--no-trials");
  const Json as_planned = expect_inside(one_plan);
  EXPECT_EQ(as_planned["trials"]["why_none"], "switched off");
  EXPECT_EQ(plans_that_ran(as_planned), 0);
  EXPECT_EQ(inside["state_crc32"], as_planned["state_crc32"]);
  EXPECT_EQ(inside["losses"], as_planned["losses"]);
  EXPECT_EQ(inside["state_crc32"], outside(all)["state_crc32"]);
}

/// Waits until the process has written so much, or is over.
void wait_until_written(pid_t process, Bytes bytes) {
  testing::wait_until(process, [&] {
    std::ifstream file("/proc/" + std::to_string(process) + "/io");
    std::string name;
    Bytes value = -1;
    while (file >> name >> value && name != "write_bytes:") {
    }
    return name != "write_bytes:" || value >= bytes;
  });
}

TEST_F(Limit, NothingIsLeftOnTheDiskOfATrainingThatIsKilled) {
  make(120 * kMiB);
  if (IsSkipped()) return;
  const Arguments all = limited(training("vgg16", "8", {"--iterations", "1000"}));
  Bytes meanwhile = 0;
  const Finished killed = group().run(all, [&](pid_t process) {
    wait_until_written(process, 200 * kMiB);
    meanwhile = testing::free_on(spill_folder());
    ::kill(process, SIGKILL);
  });
  EXPECT_EQ(killed.signal, SIGKILL) << killed.out << killed.err;
  EXPECT_LE(group().killed(), 0) << "by us, not by the kernel";
  if (own_disk()) {
    EXPECT_LT(meanwhile, testing::free_on(spill_folder()));
  }
  expect_disk_as_before();
}

}  // namespace
}  // namespace tidepool
