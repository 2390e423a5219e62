// Segments: an address-ordered list of used and free ranges of one arena, first fit.
#pragma once

#include <optional>
#include <vector>

#include "base/bytes.h"

namespace tidepool {

class Segments {
 public:
  /// All ranges start at multiples of `alignment` (a power of two).
  Segments(Bytes size, Bytes alignment);

  /// The lowest free range that takes `bytes`; nothing when there is none.
  std::optional<Bytes> allocate(Bytes bytes);
  /// That range, as `allocate` would give it. False where it is not free.
  bool take(Bytes offset, Bytes bytes);
  /// `offset` as returned by `allocate` or given to `take`.
  void free(Bytes offset);
  [[nodiscard]] Bytes largest_free() const;
  /// Offset and bytes of every free range.
  template <class Body>
  void each_free(const Body& body) const {
    for (const Segment& s : list_) {
      if (!s.used) body(s.offset, s.bytes);
    }
  }
  [[nodiscard]] Bytes used() const { return used_; }
  [[nodiscard]] Bytes size() const { return size_; }

 private:
  struct Segment {
    Bytes offset = 0;
    Bytes bytes = 0;
    bool used = false;
  };
  std::vector<Segment> list_;  ///< covers the arena; no two free neighbours
  Bytes size_;
  Bytes alignment_;
  Bytes used_ = 0;
};

}  // namespace tidepool
