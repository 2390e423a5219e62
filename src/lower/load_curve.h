// LoadCurve: bytes over the positions of a list, with additions to ranges and searches for the
// first position above a limit. Both take time in proportion to the range, but in whole blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace tidepool {

class LoadCurve {
 public:
  /// Room for so many positions, whose values are then to be set.
  void resize(std::size_t positions) {
    values_.resize(positions);
    const std::size_t blocks = (positions + kBlock - 1) / kBlock;
    added_.resize(blocks);
    most_.resize(blocks);
  }
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  /// Direct access while the values are set; then `built`.
  [[nodiscard]] std::vector<Bytes>& values() { return values_; }
  void built() {
    std::fill(added_.begin(), added_.end(), 0);
    for (std::size_t b = 0; b < most_.size(); ++b) update(b);
  }

  [[nodiscard]] Bytes at(std::size_t i) const { return values_[i] + added_[i / kBlock]; }

  /// To positions in [from, to).
  void add(std::size_t from, std::size_t to, Bytes bytes) {
    if (from >= to) return;
    const std::size_t first = from / kBlock;
    const std::size_t last = (to - 1) / kBlock;
    if (first == last) {
      add_in_block(first, from, to, bytes);
      return;
    }
    add_in_block(first, from, (first + 1) * kBlock, bytes);
    for (std::size_t b = first + 1; b < last; ++b) added_[b] += bytes;
    for (std::size_t b = first + 1; b < last; ++b) most_[b] += bytes;
    add_in_block(last, last * kBlock, to, bytes);
  }

  /// The first position in [from, to) whose value is above `limit`; `to` where there is none.
  [[nodiscard]] std::size_t first_above(std::size_t from, std::size_t to, Bytes limit) const {
    while (from < to) {
      const std::size_t b = from / kBlock;
      const std::size_t end = std::min((b + 1) * kBlock, to);
      if (most_[b] > limit) {
        const Bytes in_block = limit - added_[b];
        for (; from < end; ++from) {
          if (values_[from] > in_block) return from;
        }
      }
      from = end;
    }
    return to;
  }

 private:
  static constexpr std::size_t kBlock = 32;

  void add_in_block(std::size_t block, std::size_t from, std::size_t to, Bytes bytes) {
    for (std::size_t i = from; i < to; ++i) values_[i] += bytes;
    update(block);
  }
  void update(std::size_t block) {
    const std::size_t end = std::min((block + 1) * kBlock, values_.size());
    std::size_t i = block * kBlock;
    // Four at a time: each maximum waits for the one before.
    std::array<Bytes, 4> most;
    most.fill(values_[i]);
    for (; i + most.size() <= end; i += most.size()) {
      for (std::size_t k = 0; k < most.size(); ++k) most[k] = std::max(most[k], values_[i + k]);
    }
    for (; i < end; ++i) most[0] = std::max(most[0], values_[i]);
    most_[block] = std::max(std::max(most[0], most[1]), std::max(most[2], most[3])) + added_[block];
  }

  std::vector<Bytes> values_;
  std::vector<Bytes> added_;  ///< per block: to all its values
  std::vector<Bytes> most_;   ///< per block
};

}  // namespace tidepool
