// Training in a stated amount of RAM with a file behind it: the limit is the kernel's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include <nlohmann/json.hpp>

#include "support/process.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

constexpr long kLimitMiB = 120;

Arguments training(Arguments more) {
  Arguments all{TIDEPOOL_BINARY,
                "train",
                "vgg16",
                "--batch",
                "32",
                "--sub-batch",
                "32",
                "--data",
                "synthetic",
                "--iterations",
                "2",
                "--threads",
                "1",
                "--algorithms",
                "least-workspace",
                "--planner",
                "tide",
                "--no-cache",
                "--json"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// A control group of version 1 with a hard limit, swap included; none where it cannot be made.
class MemoryGroup {
 public:
  MemoryGroup() {
    std::error_code failed;
    std::filesystem::create_directory(folder_, failed);
    made_ = !failed && set("memory.limit_in_bytes") && set("memory.memsw.limit_in_bytes");
  }
  ~MemoryGroup() {
    std::error_code ignored;
    std::filesystem::remove(folder_, ignored);
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] long number(const std::string& file) const {
    return std::stol("0" + testing::content_of(folder_ + "/" + file));
  }
  [[nodiscard]] testing::Finished run(const Arguments& arguments) const {
    Arguments inside{"/bin/sh", "-c", "echo $$ > " + folder_ + "/cgroup.procs && exec \"$@\"",
                     "sh"};
    inside.insert(inside.end(), arguments.begin(), arguments.end());
    return testing::run_process(inside);
  }

 private:
  [[nodiscard]] bool set(const char* file) const {
    std::ofstream out(folder_ + "/" + file);
    out << (kLimitMiB << 20) << std::flush;
    return out.good();
  }
  const std::string folder_ = "/sys/fs/cgroup/memory/tidepool-test-" + std::to_string(::getpid());
  bool made_ = false;
};

TEST(Spill, TrainsInsideAKernelLimitThatUnlimitedTrainingDiesOf) {
  const MemoryGroup group;
  if (!group.made()) GTEST_SKIP() << "no control group of version 1 can be made here";
  const testing::TemporaryFolder folder;
  const std::string limit = std::to_string(kLimitMiB) + "MiB";
  const auto inside = group.run(training({"--memory", limit, "--spill", folder.path()}));
  ASSERT_EQ(inside.exit_code, 0) << inside.out << inside.err;
  EXPECT_LE(group.number("memory.max_usage_in_bytes"), kLimitMiB << 20);
  const auto json = nlohmann::json::parse(inside.out);
  EXPECT_LE(json["memory"]["highest_rss_bytes"].get<long>(), kLimitMiB << 20);
  EXPECT_GT(json["memory"]["written_bytes"].get<long>(), 0);
  EXPECT_GT(json["unlimited_peak_bytes"].get<long>(), kLimitMiB << 20);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "the file has no name";

  const auto killed = group.run(training({"--link", "5GB"}));
  EXPECT_EQ(killed.signal, SIGKILL) << killed.out << killed.err;
  const auto free = testing::run_process(training({"--link", "5GB"}));
  ASSERT_EQ(free.exit_code, 0) << free.err;
  EXPECT_EQ(nlohmann::json::parse(free.out)["state_crc32"], json["state_crc32"]);

  const auto refused = group.run(training({"--memory", "1GiB", "--spill", folder.path()}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.out, HasSubstr("the kernel would end the training"));
}

TEST(Spill, RefusesWhatCannotBeMeantBeforeAnythingIsMeasured) {
  const testing::TemporaryFolder folder;
  const std::string here = folder.path();
  const auto refused = [](const Arguments& more, int code, const std::string& message) {
    const auto run = testing::run_process(training(more));
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
