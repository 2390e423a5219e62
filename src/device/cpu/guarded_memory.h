#pragma once

#include <cstddef>
#include <string_view>

#include "base/bytes.h"

namespace tidepool {

/// Page-aligned zeroed memory, touched at once so that no page fault is timed later, followed by a
/// guard page: a write past the end stops the program instead of passing unseen.
class GuardedMemory {
 public:
  GuardedMemory() = default;
  /// Throws DeviceError naming `what` when the memory cannot be had.
  GuardedMemory(Bytes bytes, std::string_view what);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&& other) noexcept;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t mapped_ = 0;
};

}  // namespace tidepool
