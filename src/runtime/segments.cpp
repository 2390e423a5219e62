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

bool Segments::take(Bytes offset, Bytes bytes) {
  const Bytes rounded = align_up(bytes, alignment_);
  const auto behind = std::upper_bound(list_.begin(), list_.end(), offset,
                                       [](Bytes o, const Segment& s) { return o < s.offset; });
  if (behind == list_.begin()) return false;
  const auto it = std::prev(behind);
  const Segment found = *it;
  if (found.used || found.offset + found.bytes < offset + rounded) return false;
  *it = {offset, rounded, true};
  used_ += rounded;
  const Segment before{found.offset, offset - found.offset, false};
  const Segment rest{offset + rounded, found.offset + found.bytes - offset - rounded, false};
  auto place = it;
  if (before.bytes > 0) place = std::next(list_.insert(it, before));
  if (rest.bytes > 0) list_.insert(std::next(place), rest);
  return true;
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
