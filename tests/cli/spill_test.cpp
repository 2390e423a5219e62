// What --memory and --spill refuse. What they hold is in tests/cgroup.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/process.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

TEST(Spill, RefusesWhatCannotBeMeantBeforeAnythingIsMeasured) {
  const testing::TemporaryFolder folder;
  const std::string here = folder.path();
  const auto refused = [](const Arguments& more, int code, const std::string& message) {
    Arguments all{TIDEPOOL_BINARY, "train",        "vgg16", "--batch",   "32", "--data",
                  "synthetic",     "--iterations", "2",     "--threads", "1",  "--no-cache",
                  "--json"};
    all.insert(all.end(), more.begin(), more.end());
    const auto run = testing::run_process(all);
    EXPECT_EQ(run.exit_code, code) << message;
    EXPECT_THAT(run.out + run.err, HasSubstr(message));
  };
  refused({"--memory", "1GiB"}, 2, "--spill");
  refused({"--spill", here}, 2, "--memory");
  refused({"--memory", "1GiB", "--spill", here, "--budget", "1GiB"}, 2, "excludes");
  refused({"--memory", "1GiB", "--spill", here, "--verify"}, 2, "state crc32");
  refused({"--memory", "1GiB", "--spill", here, "--spill-speed", "1GB"}, 2, "is not WRITE,READ");
  refused({"--memory", "1GiB", "--spill", here + "/none"}, 2, "is no folder");
  refused({"--memory", "30MiB", "--spill", here, "--spill-speed", "1GB,1GB"}, 4,
          "--memory 31457280 B (30.0 MiB) is not enough: the smallest is");
}

}  // namespace
}  // namespace tidepool
