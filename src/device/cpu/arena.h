#pragma once

#include <cstddef>
#include <string_view>

#include "base/bytes.h"

namespace tidepool {

/// Page-aligned zeroed memory, touched at once so that no page fault is timed later, followed by a
/// guard page: a write past the end stops the program instead of passing unseen.
class Arena {
 public:
  Arena() = default;
  /// Throws DeviceError naming `what` when the memory cannot be had.
  Arena(Bytes bytes, std::string_view what);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t mapped_ = 0;
};

}  // namespace tidepool
