// StabbingTree: which of many ranges of ops contain an op.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace tidepool {

/// A segment tree: a range is listed at the fewest nodes that make it up, at most two a level.
class StabbingTree {
 public:
  StabbingTree() = default;
  explicit StabbingTree(std::size_t ops);

  /// Over [begin, end). Numbers rise from call to call; one number may have several ranges that do
  /// not overlap.
  void add(std::int32_t number, OpId begin, OpId end);
  void remove(std::int32_t number, OpId begin, OpId end);

  /// The least number with a range over `op`, or kNone.
  [[nodiscard]] std::int32_t least_over(OpId op) const;
  /// Calls `see(number)` for each number with a range over `op`.
  template <class See>
  void for_each_over(OpId op, See&& see) const {
    for (std::size_t k = leaves_ + static_cast<std::size_t>(op); k > 0; k /= 2) {
      for (const std::int32_t number : listed_[k]) see(number);
    }
  }

 private:
  template <class At>
  void for_each_node(OpId begin, OpId end, At&& at);

  // Node k is above nodes 2 k and 2 k + 1; the leaves are ops.
  std::size_t leaves_ = 1;
  std::vector<std::vector<std::int32_t>> listed_;  ///< per node, rising
};

}  // namespace tidepool
