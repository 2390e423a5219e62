// Control groups with a hard limit on memory and no swap, where the tests may make them.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "support/process.h"

namespace tidepool::testing {

/// Of version 1 where that counts memory, else of version 2. Removed at the end.
class MemoryGroup {
 public:
  explicit MemoryGroup(Bytes limit) : limit_(limit) {
    namespace fs = std::filesystem;
    const fs::path root = "/sys/fs/cgroup";
    std::error_code failed;
    first_ = fs::exists(root / "memory/memory.limit_in_bytes", failed);
    const fs::path base = first_ ? root / "memory" : root;
    if (!first_ && !fs::exists(base / "cgroup.subtree_control", failed)) {
      why_not_ = "no control groups that count memory";
      return;
    }
    if (!first_) std::ofstream(base / "cgroup.subtree_control") << "+memory" << std::flush;
    static int made = 0;
    folder_ = base / fmt::format("tidepool-test-{}-{}", ::getpid(), made++);
    fs::create_directory(folder_, failed);
    if (failed) {
      why_not_ = fmt::format("no control group can be made: {}", failed.message());
      folder_.clear();
    } else if (!(first_ ? set("memory.limit_in_bytes", limit) && set(kWithSwap, limit + kPage)
                        : set("memory.max", limit) && set("memory.swap.max", 0))) {
      why_not_ = "the control group takes no limit on memory and swap";
    }
  }
  ~MemoryGroup() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove(folder_, ignored);
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  /// Why there is none; empty: there is one.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  [[nodiscard]] Bytes limit() const { return limit_; }

  /// The most that was in use at any time, as the kernel counted it.
  [[nodiscard]] Bytes highest() const {
    std::ifstream file(folder_ / (first_ ? "memory.max_usage_in_bytes" : "memory.peak"));
    Bytes value = -1;
    file >> value;
    return value;
  }
  /// How often the kernel had to reclaim because the limit was met.
  [[nodiscard]] std::int64_t times_full() const {
    return first_ ? named("memory.failcnt", "") : named("memory.events", "max");
  }
  [[nodiscard]] std::int64_t killed() const {
    return named(first_ ? "memory.oom_control" : "memory.events", "oom_kill");
  }

  /// Runs the program as a member of the group.
  [[nodiscard]] Finished run(const std::vector<std::string>& arguments,
                             const std::function<void(pid_t)>& meanwhile = {}) const {
    std::vector<std::string> inside{
        "/bin/sh", "-c", fmt::format("echo $$ > {}/cgroup.procs && exec \"$@\"", folder_.string()),
        "sh"};
    inside.insert(inside.end(), arguments.begin(), arguments.end());
    return run_process(inside, meanwhile);
  }

 private:
  /// A page above the limit: kernels count how often the limit is met for the other one alone.
  static constexpr const char* kWithSwap = "memory.memsw.limit_in_bytes";
  static constexpr Bytes kPage = 4096;

  [[nodiscard]] bool set(const char* file, Bytes value) const {
    std::ofstream out(folder_ / file);
    out << value << std::flush;
    return out.good();
  }
  /// The number after a name; without one the first. -1: the kernel does not say.
  [[nodiscard]] std::int64_t named(const char* file, const std::string& name) const {
    std::ifstream in(folder_ / file);
    std::string word;
    std::int64_t value = -1;
    if (!name.empty()) {
      while (in >> word && word != name) {
      }
    }
    return in >> value ? value : -1;
  }

  Bytes limit_;
  bool first_ = false;
  std::filesystem::path folder_;
  std::string why_not_;
};

}  // namespace tidepool::testing
