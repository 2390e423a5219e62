// Durations as people write and read them; base/time.h has the type.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace tidepool {

/// Parses "500ms", "10s", "1.5min"; a bare number is seconds. Units: ns us ms s min h. Rounded to
/// the nearest nanosecond.
Result<Nanos> parse_duration(std::string_view text);

/// For people who wait: "450.00 ms", "45 s", "4 min", "1 h 20 min".
std::string format_duration(Nanos t);

}  // namespace tidepool
