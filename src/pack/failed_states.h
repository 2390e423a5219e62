// What a search remembers of where it failed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tidepool {

/// States that are known to fail. Overwrites when full; what it forgets is searched again.
class FailedStates {
 public:
  struct Key {
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    bool operator==(const Key&) const = default;
  };
  void clear() { std::fill(table_.begin(), table_.end(), Key{}); }
  [[nodiscard]] bool contains(const Key& key) const { return table_[slot(key)] == key; }
  void insert(const Key& key) { table_[slot(key)] = key; }

 private:
  static constexpr std::size_t kSlots = std::size_t{1} << 18;
  static std::size_t slot(const Key& key) { return key.a & (kSlots - 1); }
  std::vector<Key> table_ = std::vector<Key>(kSlots);
};

}  // namespace tidepool
