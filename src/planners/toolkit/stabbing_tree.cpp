#include "planners/toolkit/stabbing_tree.h"

#include <algorithm>

namespace tidepool {

StabbingTree::StabbingTree(std::size_t ops) {
  while (leaves_ < ops) leaves_ *= 2;
  listed_.resize(2 * leaves_);
}

template <class At>
void StabbingTree::for_each_node(OpId begin, OpId end, At&& at) {
  if (begin >= end) return;
  std::size_t low = leaves_ + static_cast<std::size_t>(begin);
  std::size_t high = leaves_ + static_cast<std::size_t>(end);
  for (; low < high; low /= 2, high /= 2) {
    if (low % 2 == 1) at(listed_[low++]);
    if (high % 2 == 1) at(listed_[--high]);
  }
}

void StabbingTree::add(std::int32_t number, OpId begin, OpId end) {
  for_each_node(begin, end, [number](std::vector<std::int32_t>& list) { list.push_back(number); });
}

void StabbingTree::remove(std::int32_t number, OpId begin, OpId end) {
  for_each_node(begin, end, [number](std::vector<std::int32_t>& list) {
    list.erase(std::lower_bound(list.begin(), list.end(), number));
  });
}

std::int32_t StabbingTree::least_over(OpId op) const {
  std::int32_t least = kNone;
  for (std::size_t k = leaves_ + static_cast<std::size_t>(op); k > 0; k /= 2) {
    if (listed_[k].empty()) continue;
    const std::int32_t first = listed_[k].front();
    if (least == kNone || first < least) least = first;
  }
  return least;
}

}  // namespace tidepool
