#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace tidepool {

/// Page-aligned zeroed memory, followed by a guard page: a write past the end stops the program
/// instead of passing unseen.
class GuardedMemory {
 public:
  enum class Pages : std::uint8_t {
    touched,  ///< at once, so that no page fault is timed later
    /// Taken when they are first written, and huge ones where the kernel has them: a disk fills
    /// those in few requests. The memory starts at a multiple of 2 MiB.
    untouched,
    promised,  ///< as untouched, and may be more than is available now
  };

  GuardedMemory() = default;
  /// Throws DeviceError naming `what` when the memory cannot be had.
  GuardedMemory(Bytes bytes, std::string_view what, Pages pages = Pages::touched);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&& other) noexcept;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }

  /// Takes the pages of this range now; what is in them stays. Throws DeviceError.
  void populate(Bytes offset, Bytes bytes);
  /// Gives back the whole pages in this range; they are zero when they are taken again.
  void discard(Bytes offset, Bytes bytes);

 private:
  std::byte* data_ = nullptr;
  std::size_t mapped_ = 0;
};

}  // namespace tidepool
