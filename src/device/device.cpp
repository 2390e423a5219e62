#include "device/device.h"

#include <algorithm>

namespace tidepool {

DeviceConfig joined(const DeviceConfig& a, const DeviceConfig& b) {
  const DeviceConfig& more = a.streams.size() < b.streams.size() ? b : a;
  const DeviceConfig& fewer = &more == &a ? b : a;
  const bool alike = std::equal(fewer.streams.begin(), fewer.streams.end(), more.streams.begin());
  if (!alike || a.arenas.size() != b.arenas.size()) {
    throw DeviceError("two plans of different streams or arenas cannot share a device");
  }
  DeviceConfig both = more;
  for (std::size_t i = 0; i < both.arenas.size(); ++i) {
    both.arenas[i].bytes = std::max(a.arenas[i].bytes, b.arenas[i].bytes);
  }
  return both;
}

void require_one_device(const DeviceConfig& config) {
  const auto& arenas = config.arenas;
  if (arenas.size() == 2 && arenas[0].kind == SpaceKind::device &&
      arenas[1].kind == SpaceKind::host) {
    return;
  }
  throw DeviceError("this device has one arena of its own and one of the host, nothing else");
}

void require_devices_and_host(const DeviceConfig& config) {
  const auto& arenas = config.arenas;
  const auto host = std::ranges::find(arenas, SpaceKind::host, &DeviceConfig::ArenaSize::kind);
  if (host == arenas.begin() || host == arenas.end() || host + 1 != arenas.end()) {
    throw DeviceError("this device has arenas of its own and then one of the host, nothing else");
  }
}

}  // namespace tidepool
