// Numbers with units as people write them ("1.5GiB", "500 ms") and need them.
#pragma once

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"

namespace tidepool {

/// The number and what follows it. NaN when no finite non-negative number starts the text.
inline std::pair<double, std::string_view> split_quantity(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || value < 0 || !std::isfinite(value)) return {std::nan(""), text};
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return {value, rest};
}

/// As format_bytes, rounded up: for what is needed, so that who gives as much gives enough.
std::string format_bytes_up(Bytes bytes);

}  // namespace tidepool
