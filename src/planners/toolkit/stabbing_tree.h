// StabbingTree: ranges of ops with values, and the one of the highest value over an op.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace tidepool {

/// A segment tree: a range is listed at the fewest nodes that make it up, at most two a level, each
/// of them a heap by values that were true once. Values may only fall, so one that is still true at
/// the top of a heap is its highest (up to rounding, where they are computed).
class StabbingTree {
 public:
  StabbingTree() = default;
  explicit StabbingTree(std::size_t ops);

  /// Over [begin, end). One number may have several ranges that do not overlap.
  void add(std::int32_t number, OpId begin, OpId end, double value);
  /// With all its ranges; one that has none may be removed too.
  void remove(std::int32_t number) {
    if (static_cast<std::size_t>(number) < removed_.size()) {
      removed_[static_cast<std::size_t>(number)] = 1;
    }
  }

  /// The number of the highest value with a range over `op`, the least of several; or kNone.
  /// `value_of(number)` is no higher than it was before.
  template <class ValueOf>
  [[nodiscard]] std::int32_t highest_over(OpId op, ValueOf&& value_of) {
    Item best;
    for (std::size_t k = leaf(op); k > 0; k /= 2) {
      std::vector<Item>& heap = heaps_[k];
      while (!heap.empty() && !(heap.front() < best)) {
        const Item top = heap.front();
        const bool gone = removed(top.number);
        const double value = gone ? top.value : value_of(top.number);
        if (!gone && value >= top.value) {
          best = top;
          break;
        }
        std::pop_heap(heap.begin(), heap.end());
        if (gone) {
          heap.pop_back();
        } else {
          heap.back().value = value;
          std::push_heap(heap.begin(), heap.end());
        }
      }
    }
    return best.number;
  }

  /// Calls `see(number)` for each number with a range over `op`, whatever its value.
  template <class See>
  void for_each_over(OpId op, See&& see) const {
    for (std::size_t k = leaf(op); k > 0; k /= 2) {
      for (const Item& item : heaps_[k]) {
        if (!removed(item.number)) see(item.number);
      }
    }
  }

 private:
  struct Item {
    double value = 0;
    std::int32_t number = kNone;
    /// Below: one of no number is below all others.
    friend bool operator<(const Item& a, const Item& b) {
      if (a.number == kNone || b.number == kNone) return b.number != kNone;
      return a.value != b.value ? a.value < b.value : a.number > b.number;
    }
  };
  [[nodiscard]] std::size_t leaf(OpId op) const { return leaves_ + static_cast<std::size_t>(op); }
  [[nodiscard]] bool removed(std::int32_t number) const {
    return removed_[static_cast<std::size_t>(number)] != 0;
  }

  // Node k is above nodes 2 k and 2 k + 1; the leaves are ops.
  std::size_t leaves_ = 1;
  std::vector<std::vector<Item>> heaps_;  ///< per node
  std::vector<char> removed_;             ///< per number
};

}  // namespace tidepool
