#include "device/device.h"

namespace tidepool {

void require_one_device(const DeviceConfig& config) {
  const auto& arenas = config.arenas;
  if (arenas.size() == 2 && arenas[0].kind == SpaceKind::device &&
      arenas[1].kind == SpaceKind::host) {
    return;
  }
  throw DeviceError("this device has one arena of its own and one of the host, nothing else");
}

}  // namespace tidepool
