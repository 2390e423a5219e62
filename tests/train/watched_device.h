// The device list of these tests: a CPU device, "watched", that says which arenas were opened.
#pragma once

#include <vector>

#include "device/device.h"

namespace tidepool::testing {

/// Of every device opened in this process since the last `forget_opened`.
std::vector<DeviceConfig> opened_devices();
void forget_opened();

}  // namespace tidepool::testing
