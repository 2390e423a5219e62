#include "bound/device_links.h"

#include <algorithm>
#include <limits>
#include <map>

namespace tidepool {
namespace {

/// One direction of a channel: the links that take turns on it count as one.
using Channels = std::map<std::int32_t, DeviceLinks::Direction>;

/// `end`: the end of a link that is on this side.
Channels channels_of(const Machine& machine, SpaceId Link::*end) {
  Channels channels;
  for (const Link& link : machine.links) {
    if (link.*end != 0) continue;
    const auto latency = static_cast<double>(link.speed.latency.count());
    const auto [it, first] = channels.try_emplace(
        link.channel, DeviceLinks::Direction{link.speed.bytes_per_second, latency});
    if (first) continue;
    DeviceLinks::Direction& all = it->second;
    all.bytes_per_second = std::max(all.bytes_per_second, link.speed.bytes_per_second);
    all.latency = std::min(all.latency, latency);
  }
  return channels;
}

DeviceLinks::Direction together(const Channels& channels) {
  DeviceLinks::Direction all;
  for (const auto& [channel, one] : channels) all.bytes_per_second += one.bytes_per_second;
  all.latency = std::numeric_limits<double>::max();
  for (const auto& [channel, one] : channels) {
    all.latency =
        std::min(all.latency, one.latency * (one.bytes_per_second / all.bytes_per_second));
  }
  return all;
}

}  // namespace

DeviceLinks device_links(const Machine& machine) {
  const Channels out = channels_of(machine, &Link::from);
  const Channels in = channels_of(machine, &Link::to);
  const bool one = out.size() == 1 && in.size() == 1 && out.begin()->first == in.begin()->first;
  return {together(out), together(in), !one};
}

}  // namespace tidepool
