#include "base/system_memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

namespace tidepool {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kKilobyte = 1024;

/// The first word of a file as a number; none for "max" and for what cannot be read.
std::optional<Bytes> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  if (!(in >> word)) return std::nullopt;
  Bytes value = 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || rest != word.data() + word.size()) return std::nullopt;
  return value;
}

/// "Name:  123 kB" in a file of /proc, in bytes.
std::optional<Bytes> kilobytes_in(const std::string& file, const std::string& name) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    long value = 0;
    if (!line.starts_with(name + ":")) continue;
    if (std::sscanf(line.c_str() + name.size() + 1, "%ld", &value) == 1) return value * kKilobyte;
  }
  return std::nullopt;
}

/// "name 123" in a file of a control group.
std::optional<Bytes> entry_in(const fs::path& file, std::string_view name) {
  std::ifstream in(file);
  std::string word;
  Bytes value = 0;
  while (in >> word >> value) {
    if (word == name) return value;
  }
  return std::nullopt;
}

/// One hierarchy of control groups: where it is mounted, which group this process is in, what its
/// files are called.
struct Hierarchy {
  fs::path mount;
  fs::path group;
  const char* limit;
  const char* peak;
  const char* anonymous;  ///< in its memory.stat: of all groups below it, too
};

/// From /proc/self/cgroup: "0::/path" is v2; "4:memory,cpu:/path" is v1.
std::vector<Hierarchy> hierarchies(const std::string& root) {
  std::vector<Hierarchy> found;
  std::ifstream in(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(in, line)) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path group = fs::path(line.substr(second + 1)).relative_path();
    const fs::path base = root + "/sys/fs/cgroup";
    if (controllers == ",,") {
      // With v1 beside it, v2 is mounted in a folder of its own.
      const fs::path beside = base / "unified";
      std::error_code unknown;
      const bool has = fs::exists(beside / "cgroup.controllers", unknown);
      found.push_back({has ? beside : base, group, "memory.max", "memory.peak", "anon"});
    } else if (controllers.find(",memory,") != std::string::npos) {
      found.push_back({base / "memory", group, "memory.limit_in_bytes", "memory.max_usage_in_bytes",
                       "total_rss"});
    }
  }
  return found;
}

struct LimitedGroup {
  Bytes limit = 0;
  fs::path folder;
  const char* peak = nullptr;
  const char* anonymous = nullptr;
};

std::optional<LimitedGroup> limited_group(const std::string& root) {
  // v1 says "none" by the largest number of whole pages.
  constexpr Bytes kNone = Bytes{1} << 60;
  std::optional<LimitedGroup> smallest;
  for (const Hierarchy& h : hierarchies(root)) {
    const auto look = [&](const fs::path& folder) {
      const auto limit = number_in(folder / h.limit);
      if (!limit || *limit >= kNone || (smallest && smallest->limit <= *limit)) return;
      smallest = LimitedGroup{*limit, folder, h.peak, h.anonymous};
    };
    for (fs::path group = h.group; !group.empty(); group = group.parent_path()) {
      look(h.mount / group);
    }
    look(h.mount);  // in a container it is the group itself, whatever its name outside
  }
  return smallest;
}

/// What other processes of the group take that they cannot be made to give back.
Bytes taken_by_others(const LimitedGroup& group) {
  const auto all = entry_in(group.folder / "memory.stat", group.anonymous);
  if (!all) return 0;
  // The kernel counts in batches: a little is no other process.
  constexpr Bytes kLittle = 4 * kMiB;
  const Bytes others = *all - resident_memory().anonymous;
  return others > kLittle ? others : 0;
}

}  // namespace

std::optional<MemoryLimit> group_memory_limit(const std::string& root) {
  const auto group = limited_group(root);
  if (!group) return std::nullopt;
  return MemoryLimit{group->limit, "the control group " + group->folder.string()};
}

MemoryLimit available_memory(const std::string& root) {
  MemoryLimit result;
  if (const auto left = kilobytes_in(root + "/proc/meminfo", "MemAvailable")) {
    result = {*left / 10 * 9, "the memory of this machine"};
  }
  const auto group = limited_group(root);
  if (!group) return result;
  const Bytes left = std::max<Bytes>(group->limit - taken_by_others(*group), 1);
  if (result.bytes == 0 || left < result.bytes) {
    result = {left, "the control group " + group->folder.string()};
  }
  return result;
}

std::optional<Bytes> machine_memory(const std::string& root) {
  return kilobytes_in(root + "/proc/meminfo", "MemTotal");
}

std::optional<Bytes> group_memory_peak(const std::string& root) {
  const auto group = limited_group(root);
  if (!group) return std::nullopt;
  return number_in(group->folder / group->peak);
}

ResidentMemory resident_memory() {
  const std::string status = "/proc/self/status";
  return {
      kilobytes_in(status, "RssAnon").value_or(0),
      kilobytes_in(status, "RssFile").value_or(0) + kilobytes_in(status, "RssShmem").value_or(0)};
}

Bytes highest_resident_memory() { return kilobytes_in("/proc/self/status", "VmHWM").value_or(0); }

void trim_heap() { ::malloc_trim(0); }

void use_one_heap() { ::mallopt(M_ARENA_MAX, 1); }

namespace {

void forget_pages(const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

}  // namespace

void forget_unused_code() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  std::set<std::string> files;
  while (std::getline(maps, line)) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    const std::size_t path = line.find('/');
    if (path == std::string::npos) continue;
    if (std::sscanf(line.c_str(), "%zx-%zx", &begin, &end) != 2) continue;
    // An address of this process, as the kernel says. NOLINTNEXTLINE(performance-no-int-to-ptr)
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_RANDOM);
    files.insert(line.substr(path));
  }
  for (const std::string& file : files) forget_pages(file);
}

void forget_read_files(const std::string& path) {
  std::error_code unknown;
  if (!fs::is_directory(path, unknown)) return forget_pages(path);
  for (const fs::directory_entry& entry : fs::directory_iterator(path, unknown)) {
    if (entry.is_regular_file(unknown)) forget_pages(entry.path().string());
  }
}

}  // namespace tidepool
