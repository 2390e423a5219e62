// Where tensors lie that are not on the device while no plan says so: on the host or, where the
// device has a file, in it. What host ops touch is always on the host, whose bytes have addresses.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/space.h"
#include "device/device.h"
#include "ir/program.h"
#include "runtime/segments.h"

namespace tidepool {

struct ReactiveBudget {
  Bytes device = 0;
  Bytes host = 0;
  /// Of the device's file, where what host ops never touch then goes instead of to the host; 0:
  /// none.
  Bytes file = 0;
};

/// The host arena has no room for what has to leave the device.
class HostArenaFull : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// The same of the file.
class FileFull : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// Bytes that suffice for every tensor at once that is not made up (empty: none is), with room for
/// what AwayPlaces keeps for itself. Without a file all of them are the host's.
ReactiveBudget enough_bytes_away(const Program& program, Bytes alignment,
                                 std::span<const char> made_up, bool with_file);

class AwayPlaces {
 public:
  static constexpr SpaceId kHostSpace = 1;
  static constexpr SpaceId kFileSpace = 2;
  /// What made-up tensors are filled from, again and again.
  static constexpr Bytes kNumbers = kMiB;

  /// The program must outlive this. `made_up` by tensor, or empty. Throws HostArenaFull when the
  /// host has no room for `numbers` and `staging`.
  AwayPlaces(const Program& program, ReactiveBudget budget, Bytes alignment,
             std::span<const char> made_up);

  [[nodiscard]] SpaceId space(TensorId tensor) const {
    return spaces_[static_cast<std::size_t>(tensor)];
  }
  /// In its space, which may be full.
  std::optional<Bytes> find_room(TensorId tensor);
  void release(TensorId tensor, Bytes offset);
  [[noreturn]] void throw_full(TensorId tensor) const;

  /// In the host arena: of kNumbers where something is made up.
  [[nodiscard]] Bytes numbers() const { return numbers_; }
  /// In the host arena: where persistent values pass on their way to the file and back.
  [[nodiscard]] Bytes staging() const { return staging_; }
  [[nodiscard]] Bytes staging_bytes() const { return staging_bytes_; }

 private:
  void find_homes(ReactiveBudget budget, Bytes alignment, std::span<const char> made_up);
  [[nodiscard]] Bytes reserve(Bytes bytes, const char* what);
  [[nodiscard]] Segments& segments(TensorId tensor) {
    return space(tensor) == kFileSpace ? file_ : host_;
  }

  const Program& program_;
  std::vector<SpaceId> spaces_;  ///< by tensor
  Segments host_;
  Segments file_;
  Bytes numbers_ = 0;
  Bytes staging_ = 0;
  Bytes staging_bytes_ = 0;
  /// Where every tensor has a place of its own; empty when the arenas are too small for that.
  std::vector<Bytes> homes_;
};

}  // namespace tidepool
