// What the links between the host and GPUs do with pinned memory.
#pragma once

#include "base/bytes.h"
#include "base/time.h"

namespace tidepool {

/// What the measurement takes of a GPU, and of the host for each, where it may.
inline constexpr Bytes kMostForLinks = 512 * kMiB;

/// Of several GPUs the slowest of each figure.
struct LinkMeasurement {
  struct Direction {
    double bytes_per_second = 0;  ///< alone, large copies
    Nanos latency{};              ///< of a small copy behind another
  };
  Direction to_host, to_device;
  /// Bytes per second of each direction while the other runs too.
  double to_host_both = 0;
  double to_device_both = 0;
  /// Of all GPUs together, while each copies in both directions.
  double to_host_all = 0;
  double to_device_all = 0;
};

/// On a device of its own, closed again afterwards, whose arenas take no more than these bytes.
/// Throws DeviceError.
LinkMeasurement measure_links(Bytes device = kMostForLinks, Bytes host = kMostForLinks,
                              int gpus = 1);

}  // namespace tidepool
