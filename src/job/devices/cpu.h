// The CPU device for programs, and for tests that open it otherwise.
#pragma once

#include "device/cpu/cpu_device.h"
#include "job/device_kind.h"

namespace tidepool {

DeviceKind cpu_device_kind();
CpuDeviceOptions cpu_options(const DeviceRequest& request);

}  // namespace tidepool
