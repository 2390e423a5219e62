// Training in a stated amount of RAM with a file behind it, inside a control group that allows no
// more and no swap: the limit is the kernel's. Skipped where no such group can be made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "base/json.h"
#include "support/disks.h"
#include "support/memory_group.h"

namespace tidepool {
namespace {

using testing::Finished;
using ::testing::HasSubstr;
using testing::MemoryGroup;
using Arguments = std::vector<std::string>;

class Limit : public ::testing::Test {
 protected:
  /// Skips the test where there is no group. The file lies on a disk of its own where one can be
  /// mounted: nobody else takes or frees space there.
  void make(Bytes limit) {
    group_.emplace(limit);
    if (!group_->why_not().empty()) GTEST_SKIP() << group_->why_not();
    if (own_disk()) free_ = testing::free_on(disk_.path());
  }
  [[nodiscard]] const MemoryGroup& group() const { return *group_; }
  [[nodiscard]] bool own_disk() const { return disk_.why_not().empty(); }
  [[nodiscard]] std::string spill_folder() const {
    return own_disk() ? disk_.path() : folder_.path();
  }

  /// Rounds and algorithms are stated: bits depend on them, and planners choose them by the limit.
  static Arguments training(const std::string& model, const std::string& batch,
                            const Arguments& more) {
    Arguments all{TIDEPOOL_BINARY,
                  "train",
                  model,
                  "--batch",
                  batch,
                  "--sub-batch",
                  batch,
                  "--algorithms",
                  "least-workspace",
                  "--data",
                  "synthetic",
                  "--threads",
                  "1",
                  "--time-limit",
                  "300ms",
                  "--no-cache",
                  "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] Arguments limited(Arguments all) const {
    const Arguments more{"--memory",      std::to_string(group_->limit()),
                         "--spill",       spill_folder(),
                         "--spill-limit", "700MiB",
                         "--spill-speed", "2GB,2GB"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static Arguments unlimited(Arguments all) {
    all.insert(all.end(), {"--planner", "none", "--link", "10GB"});
    return all;
  }

  /// Trains inside the group, and holds the run to all that is promised.
  Json expect_inside(const Arguments& all) {
    const Finished run = group_->run(limited(all));
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    EXPECT_LE(group_->highest(), group_->limit());
    EXPECT_LE(group_->killed(), 0);
    // How often it was full says little: the group also has the pages of files that were read,
    // which the kernel takes back.
    expect_disk_as_before();
    Json json = Json::parse(run.out, nullptr, false);
    if (!json.is_object()) return {};
    EXPECT_LE(json["memory"]["highest_rss_bytes"].get<Bytes>(), group_->limit());
    EXPECT_GT(json["memory"]["written_bytes"].get<Bytes>(), 0);
    return json;
  }
  static Json outside(const Arguments& all) {
    const Finished run = testing::run_process(unlimited(all));
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    return Json::parse(run.out, nullptr, false);
  }
  void expect_disk_as_before() const {
    if (own_disk()) {
      EXPECT_EQ(testing::free_on(disk_.path()), free_);
    }
  }

  testing::DiskFolder folder_;

 private:
  testing::SmallDisk disk_{"mkfs.ext4", kGiB};
  std::optional<MemoryGroup> group_;
  Bytes free_ = 0;
};

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

/// Waits until the process has written so much, or is over.
void wait_until_written(pid_t process, Bytes bytes) {
  for (int i = 0; i < 30000; ++i) {
    std::ifstream file("/proc/" + std::to_string(process) + "/io");
    std::string name;
    Bytes value = -1;
    while (file >> name >> value && name != "write_bytes:") {
    }
    if (name != "write_bytes:" || value >= bytes) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
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
