// moDNN's memory manager: a doubly linked list of address segments.
//
// Source: Chen, Chen, Han, Hu: moDNN: Memory Optimal Deep Neural Network Training on Graphics
// Processing Units, IEEE TPDS 30(3), 2019, section 3.3. A request takes a free segment of exactly
// its size, the first one found, or else the first that is large enough. Allocations happen while
// a schedule is made; what runs has the addresses.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/id.h"
#include "base/time.h"

namespace tidepool::modnn {

using SegmentId = Id<struct SegmentTag>;

/// A stretch of addresses that is taken or free as a whole.
struct Segment {
  Bytes offset = 0;
  Bytes bytes = 0;
  std::int32_t owner = kNone;  ///< who has it, as told; kNone: free
  /// Free: when the last who had some of it is done with it.
  Nanos free_from{};
  SegmentId previous = kNone;  ///< at lower addresses
  SegmentId next = kNone;
};

/// Sizes are what they are given as: who wants aligned addresses asks for multiples of the
/// alignment.
class MemoryManager {
 public:
  /// Addresses 0 to `bytes`, all free from time 0.
  explicit MemoryManager(Bytes bytes);

  /// The free segment that a request would take; kNone: none is large enough.
  [[nodiscard]] SegmentId find_free(Bytes bytes) const;
  /// Nothing where no free segment is large enough. `bytes` is positive.
  std::optional<SegmentId> allocate(Bytes bytes, std::int32_t owner);
  /// The front of a free segment that is large enough.
  SegmentId take(SegmentId segment, Bytes bytes, std::int32_t owner);
  void hand_over(SegmentId segment, std::int32_t owner) { at_id(segment).owner = owner; }
  /// From `from` on. Returns the free segment it is part of now: neighbours become one.
  SegmentId release(SegmentId segment, Nanos from);

  [[nodiscard]] const Segment& segment(SegmentId id) const {
    return segments_[static_cast<std::size_t>(id)];
  }
  /// At address 0; the others follow by `next`.
  [[nodiscard]] SegmentId first() const { return first_; }
  [[nodiscard]] Bytes free_bytes() const { return free_bytes_; }
  /// One past the highest address that was ever taken.
  [[nodiscard]] Bytes highest() const { return highest_; }

 private:
  Segment& at_id(SegmentId id) { return segments_[static_cast<std::size_t>(id)]; }
  SegmentId make(const Segment& segment);
  /// The free segment behind a free one becomes part of it.
  void absorb_next(SegmentId id);

  std::vector<Segment> segments_;  ///< in no order
  std::vector<SegmentId> unused_;
  SegmentId first_ = kNone;
  Bytes free_bytes_ = 0;
  Bytes highest_ = 0;
};

}  // namespace tidepool::modnn
