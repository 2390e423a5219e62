// Free list of the simulated allocators: ranges by address, found by best fit, merged with their
// neighbours when they are free and of the same driver allocation (segment).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/bytes.h"

namespace tidepool {

/// Bytes [address, address + bytes) of a segment. Addresses are unique over all segments, and two
/// segments never touch.
struct Range {
  Bytes address = 0;
  Bytes bytes = 0;
};

class FreeList {
 public:
  /// Addresses for a new segment, not yet free.
  Range new_segment(Bytes bytes);
  /// Puts a range back; merges it with free neighbours.
  void insert(Range range);
  /// Takes out the smallest range that has `bytes`, of equals the lowest.
  std::optional<Range> take_best(Bytes bytes);
  /// Takes out this range, if it is free and no larger one has it.
  bool take(Range range);
  /// Takes out the range that ends at `address`, if one does.
  std::optional<Range> take_ending_at(Bytes address);

 private:
  void erase(Range range);

  std::map<Bytes, Bytes> by_address_;
  std::set<std::pair<Bytes, Bytes>> by_size_;  ///< bytes, address
  Bytes next_ = 0;
};

}  // namespace tidepool
