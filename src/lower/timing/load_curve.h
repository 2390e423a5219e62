// LoadCurve: bytes over the positions of a list, with additions to ranges and searches for the
// first position above a limit. Both take whole blocks and groups of blocks at once.
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
    blocks_.resize(count(positions));
    groups_.resize(count(blocks_.size()));
  }
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  /// Direct access while the values are set; then `built`.
  [[nodiscard]] std::vector<Bytes>& values() { return values_; }
  void built() {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const std::size_t first = b * kPart;
      blocks_[b] = {0, most_of(first, std::min(first + kPart, values_.size()))};
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      groups_[g] = {0, blocks_[g * kPart].most};
      const std::size_t end = std::min((g + 1) * kPart, blocks_.size());
      for (std::size_t b = g * kPart; b < end; ++b) raise(groups_[g], blocks_[b].most);
    }
  }

  [[nodiscard]] Bytes at(std::size_t i) const {
    return values_[i] + blocks_[i / kPart].added + groups_[i / kPart / kPart].added;
  }

  /// To positions in [from, to); at least 0.
  void add(std::size_t from, std::size_t to, Bytes bytes) {
    if (from >= to) return;
    const std::size_t first = from / kPart;
    const std::size_t last = (to - 1) / kPart;
    if (first == last) {
      add_in_block(first, from, to, bytes);
      return;
    }
    add_in_block(first, from, (first + 1) * kPart, bytes);
    add_to_blocks(first + 1, last, bytes);
    add_in_block(last, last * kPart, to, bytes);
  }

  /// The first position in [from, to) whose value is above `limit`; `to` where there is none.
  [[nodiscard]] std::size_t first_above(std::size_t from, std::size_t to, Bytes limit) const {
    while (from < to) {
      const Part& group = groups_[from / kPart / kPart];
      const std::size_t end = std::min((from / kPart / kPart + 1) * kPart * kPart, to);
      if (group.most > limit) {
        const std::size_t found = first_above_in_group(from, end, limit - group.added);
        if (found < end) return found;
      }
      from = end;
    }
    return to;
  }

 private:
  /// Positions of a block, and blocks of a group.
  static constexpr std::size_t kPart = 32;
  struct Part {
    Bytes added = 0;  ///< to all its values
    Bytes most = 0;   ///< with what is added
  };

  static std::size_t count(std::size_t items) { return (items + kPart - 1) / kPart; }

  [[nodiscard]] std::size_t first_above_in_group(std::size_t from, std::size_t to,
                                                 Bytes limit) const {
    while (from < to) {
      const Part& block = blocks_[from / kPart];
      const std::size_t end = std::min((from / kPart + 1) * kPart, to);
      if (block.most > limit) {
        const Bytes in_block = limit - block.added;
        for (; from < end; ++from) {
          if (values_[from] > in_block) return from;
        }
      }
      from = end;
    }
    return to;
  }

  void add_in_block(std::size_t block, std::size_t from, std::size_t to, Bytes bytes) {
    Part& part = blocks_[block];
    Bytes most = part.most - part.added;
    for (std::size_t i = from; i < to; ++i) most = std::max(most, values_[i] += bytes);
    part.most = most + part.added;
    raise(groups_[block / kPart], part.most);
  }
  /// Whole groups at once.
  void add_to_blocks(std::size_t from, std::size_t to, Bytes bytes) {
    while (from < to) {
      Part& group = groups_[from / kPart];
      const std::size_t end = std::min((from / kPart + 1) * kPart, to);
      if (end - from == kPart) {
        group.added += bytes;
        group.most += bytes;
        from = end;
        continue;
      }
      Bytes most = blocks_[from].most;
      for (; from < end; ++from) {
        blocks_[from].added += bytes;
        most = std::max(most, blocks_[from].most += bytes);
      }
      raise(group, most);
    }
  }
  static void raise(Part& group, Bytes most) {
    group.most = std::max(group.most, most + group.added);
  }
  /// The most of values in [begin, end). Four at a time: each maximum waits for the one before.
  [[nodiscard]] Bytes most_of(std::size_t begin, std::size_t end) const {
    std::size_t i = begin;
    std::array<Bytes, 4> most;
    most.fill(values_[i]);
    for (; i + most.size() <= end; i += most.size()) {
      for (std::size_t k = 0; k < most.size(); ++k) most[k] = std::max(most[k], values_[i + k]);
    }
    for (; i < end; ++i) most[0] = std::max(most[0], values_[i]);
    return std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
  }

  std::vector<Bytes> values_;
  std::vector<Part> blocks_;
  std::vector<Part> groups_;
};

}  // namespace tidepool
