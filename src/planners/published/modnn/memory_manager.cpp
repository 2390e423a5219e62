#include "planners/published/modnn/memory_manager.h"

#include <algorithm>

#include "base/invariant.h"

namespace tidepool::modnn {

MemoryManager::MemoryManager(Bytes bytes) : free_bytes_(bytes) {
  if (bytes > 0) first_ = make({0, bytes, kNone, Nanos{0}, kNone, kNone});
}

SegmentId MemoryManager::find_free(Bytes bytes) const {
  SegmentId large = kNone;
  for (SegmentId id = first_; id != kNone; id = segment(id).next) {
    const Segment& s = segment(id);
    if (s.owner != kNone || s.bytes < bytes) continue;
    if (s.bytes == bytes) return id;
    if (large == kNone) large = id;
  }
  return large;
}

std::optional<SegmentId> MemoryManager::allocate(Bytes bytes, std::int32_t owner) {
  invariant(bytes > 0, "an allocation has bytes");
  const SegmentId found = find_free(bytes);
  if (found == kNone) return std::nullopt;
  return take(found, bytes, owner);
}

SegmentId MemoryManager::take(SegmentId segment, Bytes bytes, std::int32_t owner) {
  invariant(at_id(segment).owner == kNone && at_id(segment).bytes >= bytes,
            "a segment that is taken is free and large enough");
  if (const Segment whole = at_id(segment); whole.bytes > bytes) {
    const SegmentId rest = make(
        {whole.offset + bytes, whole.bytes - bytes, kNone, whole.free_from, segment, whole.next});
    if (whole.next != kNone) at_id(whole.next).previous = rest;
    at_id(segment).next = rest;
  }
  Segment& taken = at_id(segment);
  taken.bytes = bytes;
  taken.owner = owner;
  free_bytes_ -= bytes;
  highest_ = std::max(highest_, taken.offset + bytes);
  return segment;
}

SegmentId MemoryManager::release(SegmentId segment, Nanos from) {
  Segment& freed = at_id(segment);
  invariant(freed.owner != kNone, "a segment that is released was taken");
  freed.owner = kNone;
  freed.free_from = from;
  free_bytes_ += freed.bytes;
  absorb_next(segment);
  const SegmentId before = at_id(segment).previous;
  if (before == kNone || at_id(before).owner != kNone) return segment;
  absorb_next(before);
  return before;
}

SegmentId MemoryManager::make(const Segment& segment) {
  if (unused_.empty()) {
    segments_.push_back(segment);
    return static_cast<SegmentId>(segments_.size()) - 1;
  }
  const SegmentId id = unused_.back();
  unused_.pop_back();
  at_id(id) = segment;
  return id;
}

void MemoryManager::absorb_next(SegmentId id) {
  Segment& low = at_id(id);
  const SegmentId gone = low.next;
  if (gone == kNone || at_id(gone).owner != kNone) return;
  const Segment& high = at_id(gone);
  low.bytes += high.bytes;
  low.free_from = std::max(low.free_from, high.free_from);
  low.next = high.next;
  if (low.next != kNone) at_id(low.next).previous = id;
  unused_.push_back(gone);
}

}  // namespace tidepool::modnn
