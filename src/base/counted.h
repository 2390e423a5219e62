// Counts in messages.
#pragma once

#include <fmt/core.h>

#include <concepts>
#include <string>
#include <string_view>

namespace tidepool {

/// "1 tensor", "2 tensors".
template <std::integral Count>
std::string counted(Count count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace tidepool
