#include "base/bytes.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "base/quantity.h"

namespace tidepool {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 11> kByteUnits{{
    {"", 1.0},
    {"B", 1.0},
    {"kB", 1e3},
    {"KB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
    {"TB", 1e12},
    {"KiB", 0x1p10},
    {"MiB", 0x1p20},
    {"GiB", 0x1p30},
    {"TiB", 0x1p40},
}};

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  const auto [value, unit] = split_quantity(text);
  if (!std::isnan(value)) {
    for (const auto& [name, factor] : kByteUnits) {
      if (unit != name) continue;
      const double bytes = value * factor;
      if (bytes >= 0x1p62)
        return fail(ErrorCode::usage, fmt::format("size '{}' is too large", text));
      return static_cast<Bytes>(bytes);
    }
  }
  return fail(ErrorCode::usage,
              fmt::format("'{}' is not a size; expected a size {}", text, kFormsOfSizes));
}

Bytes SizeOrPercent::resolve(Bytes base) const {
  if (percent < 0) return bytes;
  return static_cast<Bytes>(static_cast<double>(base) * percent / 100.0);
}

Result<SizeOrPercent> parse_size_or_percent(std::string_view text) {
  if (!text.empty() && text.back() == '%') {
    const auto [value, rest] = split_quantity(text);
    if (std::isnan(value) || rest != "%" || value <= 0 || value > 1000) {
      return fail(ErrorCode::usage,
                  fmt::format("'{}' is not a percentage between 0% and 1000%", text));
    }
    return SizeOrPercent{0, value};
  }
  auto bytes = parse_bytes(text);
  if (!bytes) {
    return fail(ErrorCode::usage,
                fmt::format("'{}' is not a size; expected a size {}, or a percentage such as 60%",
                            text, kFormsOfSizes));
  }
  return SizeOrPercent{*bytes, -1};
}

std::string format_bytes(Bytes bytes) {
  const double b = static_cast<double>(bytes);
  const double magnitude = std::abs(b);
  if (magnitude >= 0x1p30) return fmt::format("{:.2f} GiB", b / 0x1p30);
  if (magnitude >= 0x1p20) return fmt::format("{:.1f} MiB", b / 0x1p20);
  if (magnitude >= 0x1p10) return fmt::format("{:.1f} KiB", b / 0x1p10);
  return fmt::format("{} B", bytes);
}

std::string format_bytes_up(Bytes bytes) {
  const double b = static_cast<double>(bytes);
  const auto up = [&](double unit, double digits) { return std::ceil(b / unit * digits) / digits; };
  if (b > 0x1p30 - 0x1p20 / 10) return fmt::format("{:.2f} GiB", up(0x1p30, 100));
  if (b > 0x1p20 - 0x1p10 / 10) return fmt::format("{:.1f} MiB", up(0x1p20, 10));
  if (b >= 0x1p10) return fmt::format("{:.1f} KiB", up(0x1p10, 10));
  return fmt::format("{} B", bytes);
}

}  // namespace tidepool
