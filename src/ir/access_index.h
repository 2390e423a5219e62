// Who accesses each tensor and when, and the gaps between the accesses.
#pragma once

#include <span>
#include <vector>

#include "base/id.h"
#include "ir/program.h"

namespace tidepool {

using GapId = Id<struct GapTag>;

/// One access of one tensor. Versions count a tensor's values within an iteration: 0 is the value
/// at its start (persistent tensors), each write or update makes the next.
struct TensorAccess {
  OpId op = kNone;
  std::int32_t operand = 0;  ///< position in the op's access list
  AccessMode mode = AccessMode::read;
  std::int32_t version_read = kNone;     ///< kNone for a write
  std::int32_t version_written = kNone;  ///< kNone for a read
};

enum class GapKind : std::uint8_t {
  device,    ///< between two device accesses: keep, swap, drop or recompute is decided here
  upload,    ///< from a host access to a device access: always a copy in
  download,  ///< from a device access to a host access: always a copy out
  host,      ///< between two host accesses: nothing moves
  /// Between two device accesses of a pinned tensor, or over the iteration's end of one whose home
  /// is the device: always kept.
  kept,
};

/// The idle interval between two successive accesses of one tensor. A persistent tensor's last gap
/// wraps: from its last access to its first one in the next iteration.
struct Gap {
  TensorId tensor = kNone;
  OpId from = kNone;
  OpId to = kNone;
  bool wraps = false;
  GapKind kind = GapKind::device;
  std::int32_t version = kNone;  ///< the version that lives through the gap
  /// It ends in a write and does not wrap: nobody reads the version again, and its bytes are free
  /// for nothing. (A wrapping gap's value is what the training ends with.)
  bool dead = false;
};

class AccessIndex {
 public:
  explicit AccessIndex(const Program& program);

  [[nodiscard]] std::span<const TensorAccess> accesses(TensorId tensor) const {
    return slice(accesses_, access_start_, tensor);
  }
  /// All gaps: by tensor, then in time order; a wrapping gap is its tensor's last.
  [[nodiscard]] std::span<const Gap> gaps() const { return gaps_; }
  /// Ids of a tensor's gaps: [first, first + count).
  [[nodiscard]] GapId first_gap(TensorId tensor) const {
    return gap_start_[static_cast<std::size_t>(tensor)];
  }
  [[nodiscard]] std::span<const Gap> gaps(TensorId tensor) const {
    return slice(gaps_, gap_start_, tensor);
  }

 private:
  template <class T>
  static std::span<const T> slice(const std::vector<T>& all, const std::vector<std::int32_t>& start,
                                  TensorId tensor) {
    const auto t = static_cast<std::size_t>(tensor);
    return std::span<const T>(all).subspan(static_cast<std::size_t>(start[t]),
                                           static_cast<std::size_t>(start[t + 1] - start[t]));
  }

  std::vector<TensorAccess> accesses_;
  std::vector<std::int32_t> access_start_;
  std::vector<Gap> gaps_;
  std::vector<std::int32_t> gap_start_;
};

}  // namespace tidepool
