#include "bound/device_links.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/at.h"

namespace tidepool {
namespace {

DeviceLinks::Direction direction(const Link& link) {
  return {link.speed.bytes_per_second, static_cast<double>(link.speed.latency.count())};
}

/// One direction of a channel: the links that take turns on it count as one.
using Channels = std::map<std::int32_t, DeviceLinks::Direction>;

/// `end`: the end of a link that is on this side.
Channels channels_of(const Machine& machine, SpaceId Link::*end) {
  Channels channels;
  for (const Link& link : machine.links) {
    if (link.*end != 0) continue;
    const DeviceLinks::Direction one = direction(link);
    const auto [it, first] = channels.try_emplace(link.channel, one);
    if (first) continue;
    DeviceLinks::Direction& all = it->second;
    all.bytes_per_second = std::max(all.bytes_per_second, one.bytes_per_second);
    all.latency = std::min(all.latency, one.latency);
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

std::optional<DeviceLinks::File> file_behind_host(const Machine& machine) {
  const SpaceId file = machine.behind_host();
  if (file == kNone) return std::nullopt;
  const Link* const write = machine.find_link(machine.host(), file);
  const Link* const read = machine.find_link(file, machine.host());
  if (write == nullptr || read == nullptr) return std::nullopt;
  return DeviceLinks::File{direction(*write), direction(*read), write->channel != read->channel};
}

}  // namespace

DeviceLinks device_links(const Machine& machine) {
  const Channels out = channels_of(machine, &Link::from);
  const Channels in = channels_of(machine, &Link::to);
  const bool one = out.size() == 1 && in.size() == 1 && out.begin()->first == in.begin()->first;
  const bool to_file = std::ranges::any_of(machine.links, [&](const Link& link) {
    return link.from == 0 && machine.spaces[at(link.to)].kind == SpaceKind::file;
  });
  return {together(out), together(in), !one, file_behind_host(machine), to_file};
}

}  // namespace tidepool
