#include "planners/toolkit/stabbing_tree.h"

namespace tidepool {

StabbingTree::StabbingTree(std::size_t ops) {
  while (leaves_ < ops) leaves_ *= 2;
  heaps_.resize(2 * leaves_);
}

void StabbingTree::add(std::int32_t number, OpId begin, OpId end, double value) {
  if (removed_.size() <= static_cast<std::size_t>(number)) {
    removed_.resize(static_cast<std::size_t>(number) + 1, 0);
  }
  if (begin >= end) return;
  const auto list = [&](std::size_t node) {
    heaps_[node].push_back({value, number});
    std::push_heap(heaps_[node].begin(), heaps_[node].end());
  };
  std::size_t low = leaf(begin);
  std::size_t high = leaf(end);
  for (; low < high; low /= 2, high /= 2) {
    if (low % 2 == 1) list(low++);
    if (high % 2 == 1) list(--high);
  }
}

}  // namespace tidepool
