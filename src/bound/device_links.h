// The links of the device, taken together: what the bounds know of a machine.
#pragma once

#include <optional>

#include "cost/machine.h"

namespace tidepool {

/// How fast bytes can leave the first device, or come in: over all its links, to the host, to other
/// devices, to files. What is away may be anywhere.
struct DeviceLinks {
  struct Direction {
    double bytes_per_second = 0;
    double latency = 0;  ///< nanoseconds that a copy takes up beside its bytes, see below
  };
  Direction out;
  Direction in;
  bool duplex = true;  ///< false: one channel carries both directions

  struct File {
    Direction write;
    Direction read;
    bool duplex = true;  ///< as above
  };
  std::optional<File> behind_host;  ///< a file that only the host has links to
  bool to_file = false;             ///< the device has a link to a file
};

/// Note [Several links]. Links of speeds r_i and latencies l_i, R = sum of r_i. In a time T link i
/// carries copies with sum of (l_i + bytes / r_i) <= T. Times r_i / R, summed up over the links:
/// sum over all copies of (l_i r_i / R + bytes / R) <= T. So they do no more than one link of speed
/// R whose latency is the least of l_i r_i / R. Links that take turns on one channel carry no more
/// than one of the highest of their speeds and the least of their latencies. That some channels
/// carry both directions is left out where there are several: it can only make schedules slower.
DeviceLinks device_links(const Machine& machine);

}  // namespace tidepool
