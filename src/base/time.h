// Durations and points in time. Whole nanoseconds, so that the evaluator, the simulator and the
// fake device agree exactly and not merely within a rounding error.
#pragma once

#include <chrono>
#include <string>

namespace tidepool {

using Nanos = std::chrono::nanoseconds;

constexpr double to_ms(Nanos t) { return static_cast<double>(t.count()) * 1e-6; }
constexpr double to_seconds(Nanos t) { return static_cast<double>(t.count()) * 1e-9; }
/// Rounded to the nearest; for durations, which are not negative.
constexpr Nanos from_seconds(double s) {
  return Nanos{
      static_cast<Nanos::rep>(s * 1e9 + 0.5)};  // NOLINT(bugprone-incorrect-roundings): constexpr
}

/// For people: "81.57 ms", "12.3 us", "2.10 s".
std::string format_time(Nanos t);

}  // namespace tidepool
