#include "trace/allocators/free_list.h"

#include <iterator>

namespace tidepool {

Range FreeList::new_segment(Bytes bytes) {
  const Range range{next_, bytes};
  next_ += bytes + 1;  // the gap keeps segments from merging
  return range;
}

void FreeList::erase(Range range) {
  by_address_.erase(range.address);
  by_size_.erase({range.bytes, range.address});
}

void FreeList::insert(Range range) {
  const auto after = by_address_.find(range.address + range.bytes);
  if (after != by_address_.end()) {
    const Range next{after->first, after->second};
    erase(next);
    range.bytes += next.bytes;
  }
  if (const auto before = take_ending_at(range.address)) {
    range = {before->address, before->bytes + range.bytes};
  }
  by_address_.emplace(range.address, range.bytes);
  by_size_.emplace(range.bytes, range.address);
}

std::optional<Range> FreeList::take_best(Bytes bytes) {
  const auto best = by_size_.lower_bound({bytes, 0});
  if (best == by_size_.end()) return std::nullopt;
  const Range range{best->second, best->first};
  erase(range);
  return range;
}

bool FreeList::take(Range range) {
  const auto found = by_address_.find(range.address);
  if (found == by_address_.end() || found->second != range.bytes) return false;
  erase(range);
  return true;
}

std::optional<Range> FreeList::take_ending_at(Bytes address) {
  const auto after = by_address_.lower_bound(address);
  if (after == by_address_.begin()) return std::nullopt;
  const auto last = std::prev(after);
  if (last->first + last->second != address) return std::nullopt;
  const Range range{last->first, last->second};
  erase(range);
  return range;
}

}  // namespace tidepool
