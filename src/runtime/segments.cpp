#include "runtime/segments.h"

#include <algorithm>
#include <cassert>

namespace tidepool {

Segments::Segments(Bytes size, Bytes alignment) : size_(size), alignment_(alignment) {
  if (size > 0) list_.push_back({0, size, false});
}

std::optional<Bytes> Segments::allocate(Bytes bytes) {
  const Bytes rounded = align_up(bytes, alignment_);
  for (std::size_t i = 0; i < list_.size(); ++i) {
    if (list_[i].used || list_[i].bytes < rounded) continue;
    const Segment rest{list_[i].offset + rounded, list_[i].bytes - rounded, false};
    list_[i].bytes = rounded;
    list_[i].used = true;
    const Bytes offset = list_[i].offset;
    if (rest.bytes > 0) list_.insert(list_.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
    used_ += rounded;
    return offset;
  }
  return std::nullopt;
}

void Segments::free(Bytes offset) {
  const auto it = std::lower_bound(list_.begin(), list_.end(), offset,
                                   [](const Segment& s, Bytes o) { return s.offset < o; });
  assert(it != list_.end() && it->offset == offset && it->used);
  it->used = false;
  used_ -= it->bytes;
  const auto merge_with_next = [&](std::vector<Segment>::iterator s) {
    const auto next = std::next(s);
    if (next == list_.end() || s->used || next->used) return;
    s->bytes += next->bytes;
    list_.erase(next);
  };
  merge_with_next(it);
  if (it != list_.begin()) merge_with_next(std::prev(it));
}

Bytes Segments::largest_free() const {
  Bytes largest = 0;
  for (const Segment& s : list_) {
    if (!s.used) largest = std::max(largest, s.bytes);
  }
  return largest;
}

}  // namespace tidepool
