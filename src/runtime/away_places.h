// Where tensors lie that are not on the device while no plan says so: on the host or, where the
// device has a file, in it. What host ops touch is always on the host, whose bytes have addresses.
// With a file that only the host has copies with, the host takes what it can hold.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/space.h"
#include "device/device.h"
#include "ir/program.h"
#include "runtime/segments.h"

namespace tidepool {

/// What takes the bytes that leave the device, but for those that host ops touch.
enum class Away : std::uint8_t {
  host,
  file,
  host_then_file,  ///< the file lies behind the host, and takes what finds no room there
};

struct ReactiveBudget {
  Bytes device = 0;
  Bytes host = 0;
  Bytes file = 0;  ///< of the device's file; 0: it is not used
  bool file_behind_host = false;

  [[nodiscard]] Away away() const {
    if (file == 0) return Away::host;
    return file_behind_host ? Away::host_then_file : Away::file;
  }
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
/// what AwayPlaces keeps for itself. The host's are the least it needs where a file takes the rest.
ReactiveBudget enough_bytes_away(const Program& program, Bytes alignment,
                                 std::span<const char> made_up, Away away);

class AwayPlaces {
 public:
  static constexpr SpaceId kHostSpace = 1;
  static constexpr SpaceId kFileSpace = 2;
  /// What made-up tensors are filled from, again and again.
  static constexpr Bytes kNumbers = kMiB;

  /// The program must outlive this. `made_up` by tensor, or empty. Throws HostArenaFull when the
  /// host has no room for `numbers`, `staging` and, before a file, what host ops touch.
  AwayPlaces(const Program& program, ReactiveBudget budget, Bytes alignment,
             std::span<const char> made_up);

  /// Where there is a file behind the host: since room was found for the tensor the last time.
  [[nodiscard]] SpaceId space(TensorId tensor) const {
    return spaces_[static_cast<std::size_t>(tensor)];
  }
  /// In its space, which may be full.
  std::optional<Bytes> find_room(TensorId tensor);
  void release(TensorId tensor, Bytes offset);
  [[noreturn]] void throw_full(TensorId tensor) const;

  /// In the host arena: of kNumbers where something is made up.
  [[nodiscard]] Bytes numbers() const { return numbers_; }
  /// In the host arena: where persistent values, or all before a file behind the host, pass on
  /// their way to the file and back.
  [[nodiscard]] Bytes staging() const { return staging_; }
  /// Bytes pass through there between device and file.
  [[nodiscard]] bool over_host() const { return away_ == Away::host_then_file; }
  [[nodiscard]] Bytes staging_bytes() const { return staging_bytes_; }

 private:
  static constexpr Bytes kNowhere = -1;
  void find_homes(ReactiveBudget budget, Bytes alignment, std::span<const char> made_up);
  void find_homes_over_host(ReactiveBudget budget);
  [[nodiscard]] bool moves_on(TensorId tensor) const {
    return over_host() && host_ops_touch_[static_cast<std::size_t>(tensor)] == 0;
  }
  [[nodiscard]] Bytes reserve(Bytes bytes, const char* what);
  [[nodiscard]] Segments& segments(TensorId tensor) {
    return space(tensor) == kFileSpace ? file_ : host_;
  }

  const Program& program_;
  Away away_;
  std::vector<char> host_ops_touch_;  ///< by tensor
  std::vector<SpaceId> spaces_;       ///< by tensor
  Segments host_;
  Segments file_;
  Bytes numbers_ = 0;
  Bytes staging_ = 0;
  Bytes staging_bytes_ = 0;
  /// Where every tensor has a place of its own; empty when the arenas are too small for that. Over
  /// the host: of what host ops touch there, and of the rest in the file, or kNowhere where that is
  /// too small.
  std::vector<Bytes> homes_;
};

}  // namespace tidepool
