#include "bound/device_links.h"

#include <algorithm>
#include <limits>

namespace tidepool {
namespace {

/// `end`: the end of a link that is on this side.
DeviceLinks::Direction together(const Machine& machine, SpaceId Link::*end) {
  DeviceLinks::Direction all;
  for (const Link& link : machine.links) {
    if (link.*end == 0) all.bytes_per_second += link.speed.bytes_per_second;
  }
  all.latency = std::numeric_limits<double>::max();
  for (const Link& link : machine.links) {
    if (link.*end != 0) continue;
    const double share = link.speed.bytes_per_second / all.bytes_per_second;
    all.latency = std::min(all.latency, static_cast<double>(link.speed.latency.count()) * share);
  }
  return all;
}

}  // namespace

DeviceLinks device_links(const Machine& machine) {
  const auto count = [&](SpaceId Link::*end) {
    return std::ranges::count(machine.links, SpaceId{0}, end);
  };
  const bool several = count(&Link::from) > 1 || count(&Link::to) > 1;
  return {together(machine, &Link::from), together(machine, &Link::to),
          several || machine.duplex()};
}

}  // namespace tidepool
