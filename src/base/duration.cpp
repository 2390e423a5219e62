#include "base/duration.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "base/quantity.h"

namespace tidepool {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 7> kTimeUnits{{
    {"", 1e9},
    {"ns", 1.0},
    {"us", 1e3},
    {"ms", 1e6},
    {"s", 1e9},
    {"min", 60e9},
    {"h", 3600e9},
}};

}  // namespace

Result<Nanos> parse_duration(std::string_view text) {
  constexpr double kMost = 0x1p62;  // 146 years
  const auto [value, unit] = split_quantity(text);
  for (const auto& [name, factor] : kTimeUnits) {
    if (std::isnan(value) || unit != name) continue;
    if (value * factor >= kMost) {
      return fail(ErrorCode::usage, fmt::format("duration '{}' is too long", text));
    }
    return Nanos{std::llround(value * factor)};
  }
  return fail(ErrorCode::usage,
              fmt::format("'{}' is not a duration; expected one such as 500ms, 10s or 2min (units: "
                          "ns us ms s min h; a bare number is seconds)",
                          text));
}

std::string format_duration(Nanos t) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  const double seconds = to_seconds(t);
  if (seconds < 10) return format_time(t);
  const std::int64_t s = std::llround(seconds);
  if (s < 2 * kMinute) return fmt::format("{} s", s);
  const std::int64_t minutes = (s + kMinute / 2) / kMinute;
  if (s < kHour) return fmt::format("{} min", minutes);
  return fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

}  // namespace tidepool
