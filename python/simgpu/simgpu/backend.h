/// What PyTorch asks of a device.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

namespace sim {

c10::DeviceAllocator& allocator();

/// To be called once.
void register_hooks();

}  // namespace sim
