// Where the bytes of each tensor go when they leave the device.
#pragma once

#include <vector>

#include "cost/machine.h"

namespace tidepool {

/// Per tensor: the host, where a host op uses it, or else what the machine has for bytes that are
/// away.
std::vector<SpaceId> away_spaces(const Program& program, const Machine& machine);

}  // namespace tidepool
