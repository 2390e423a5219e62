#include "cost/spill.h"

#include <algorithm>

#include "base/invariant.h"

namespace tidepool {

Machine with_spill(const Machine& machine, const SpillLink& link) {
  invariant(machine.devices() == 1, "a machine that spills has one device");
  constexpr SpaceId kHost = 1;
  constexpr SpaceId kFile = 2;
  const std::int32_t in = link.duplex ? 1 : 0;
  Machine m = machine;
  m.spaces.resize(2);
  m.spaces.push_back({SpaceKind::file, link.bytes, link.alignment});
  m.set_alignment(link.alignment);
  m.buses.clear();
  m.links = {{0, kHost, link.memory, 0},
             {kHost, 0, link.memory, in},
             {0, kFile, link.write, 0},
             {kFile, 0, link.read, in}};
  return m;
}

Machine with_file_tier(const Machine& machine, const FileTierLink& link) {
  const SpaceId host = machine.host();
  invariant(host + 1 == std::ssize(machine.spaces), "the machine has no file yet");
  const std::int32_t channel = machine.channels();
  Machine m = machine;
  m.spaces.push_back({SpaceKind::file, link.bytes, link.alignment});
  m.links.push_back({host, host + 1, link.write, channel});
  m.links.push_back({host + 1, host, link.read, link.duplex ? channel + 1 : channel});
  return m;
}

bool may_write_to_file(const Machine& machine) {
  return std::ranges::any_of(machine.spaces,
                             [](const MemorySpace& s) { return s.kind == SpaceKind::file; });
}

}  // namespace tidepool
