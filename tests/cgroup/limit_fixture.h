// Trainings of the built program inside a control group that allows no more memory and no swap,
// with a file on a disk of their own.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "support/disks.h"
#include "support/memory_group.h"

namespace tidepool {

using testing::Finished;
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
  /// Searches end by their evaluations: on a busy machine one of a time may find no addresses, and
  /// what then stands in for its plan needs more than a session's half of the file.
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
                  model == "transformer" ? "text" : "synthetic",
                  "--threads",
                  "1",
                  "--evaluations",
                  "50",
                  "--time-limit",
                  "1ns",
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

}  // namespace tidepool
