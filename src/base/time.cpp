#include "base/time.h"

#include <fmt/format.h>

#include <cmath>

namespace tidepool {

std::string format_time(Nanos t) {
  const auto ns = static_cast<double>(t.count());
  const double magnitude = std::abs(ns);
  if (magnitude >= 1e9) return fmt::format("{:.2f} s", ns * 1e-9);
  if (magnitude >= 1e6) return fmt::format("{:.2f} ms", ns * 1e-6);
  if (magnitude >= 1e3) return fmt::format("{:.1f} us", ns * 1e-3);
  return fmt::format("{} ns", t.count());
}

}  // namespace tidepool
