/// Finds accesses to memory that no wait orders, by vector clocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace sim {

constexpr int kMostStreams = 16;
constexpr int kHost = kMostStreams - 1;  // the host's own place in a clock
constexpr size_t kGrain = 512;  // accesses are compared in such pieces; blocks begin on them

/// What somebody has seen happen: of each stream, how many of its tasks.
struct Clock {
  std::array<uint64_t, kMostStreams> at{};

  void join(const Clock& other);
};

struct Range {
  uintptr_t begin, end;
  bool write;
};

/// Compares each access with the last ones of the same memory. Not locked.
class Races {
 public:
  bool looks = true;

  /// Notes what `who`, a stream or the host, does at its `clock`; `name` is the op's.
  void look(int who, const Clock& clock, const std::string& name, const Range& range);
  void add(std::string text);
  /// Returns what was found since the last call, in words.
  std::vector<std::string> take();
  bool any() const { return !found_.empty(); }

 private:
  struct Last {
    int writer = -1;
    uint64_t written = 0;
    const std::string* writer_name = nullptr;
    std::array<uint64_t, kMostStreams> read{};
    std::array<const std::string*, kMostStreams> reader_name{};
  };

  void report(const char* does, int who, const std::string& name, const char* done, int other,
              const std::string& other_name, uintptr_t grain);

  std::unordered_map<uintptr_t, Last> last_;
  std::set<std::string> names_;
  std::vector<std::string> found_;
};

}  // namespace sim
