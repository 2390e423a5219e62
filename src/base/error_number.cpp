#include "base/error_number.h"

#include <fmt/format.h>

#include <cstring>

// New in glibc 2.32, and programs for GPU machines start from 2.31 on.
extern "C" [[gnu::weak]] const char* strerrorname_np(int reason) noexcept;

namespace tidepool {

std::string describe_errno(int reason) {
  const char* const name = &strerrorname_np == nullptr ? nullptr : ::strerrorname_np(reason);
  return name != nullptr ? fmt::format("{} ({})", std::strerror(reason), name)
                         : fmt::format("{} (error {})", std::strerror(reason), reason);
}

}  // namespace tidepool
