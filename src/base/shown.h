// Text of a file, as messages show it.
#pragma once

#include <string>
#include <string_view>

namespace tidepool {

/// Short, and without bytes that are no text.
inline std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string out;
  for (const char c : text.substr(0, kMost)) out += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > kMost ? out + "..." : out;
}

}  // namespace tidepool
