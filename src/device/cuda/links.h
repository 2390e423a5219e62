// What the link between the host and a GPU does with pinned memory.
#pragma once

#include "base/bytes.h"
#include "base/time.h"

namespace tidepool {

/// What the measurement takes of the device and of the host where it may.
inline constexpr Bytes kMostForLinks = 512 * kMiB;

struct LinkMeasurement {
  struct Direction {
    double bytes_per_second = 0;  ///< alone, large copies
    Nanos latency{};              ///< of a small copy behind another
  };
  Direction to_host, to_device;
  /// Bytes per second of each direction while the other runs too.
  double to_host_both = 0;
  double to_device_both = 0;
};

/// On a device of its own, closed again afterwards, whose arenas take no more than these bytes.
/// Throws DeviceError.
LinkMeasurement measure_links(Bytes device = kMostForLinks, Bytes host = kMostForLinks);

}  // namespace tidepool
