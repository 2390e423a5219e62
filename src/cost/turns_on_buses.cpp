#include "cost/turns_on_buses.h"

#include <algorithm>
#include <utility>

namespace tidepool {

Machine with_turns_on_buses(const Machine& machine) {
  Machine m = machine;
  if (machine.devices() != 1) return m;
  for (Link& link : m.links) {
    if (link.bus == kNone) continue;
    const double bus = m.buses[static_cast<std::size_t>(link.bus)];
    link.speed.bytes_per_second = std::min(link.speed.bytes_per_second, bus);
    // All links of the bus on the channel of the first; what shared the others' comes along.
    const auto first = std::ranges::find(m.links, link.bus, &Link::bus);
    const std::int32_t channel = std::exchange(link.channel, first->channel);
    for (Link& other : m.links) {
      if (other.channel == channel) other.channel = first->channel;
    }
  }
  for (Link& link : m.links) link.bus = kNone;
  m.buses.clear();
  // Without holes.
  for (std::int32_t channel = 0; channel < m.channels(); ++channel) {
    if (std::ranges::count(m.links, channel, &Link::channel) > 0) continue;
    for (Link& link : m.links) link.channel -= link.channel > channel ? 1 : 0;
    --channel;
  }
  return m;
}

}  // namespace tidepool
