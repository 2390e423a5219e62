#pragma once

#include <cstdint>

#include "base/id.h"

namespace tidepool {

/// What an in-order stream carries.
enum class StreamKind : std::uint8_t { compute, copy, host };

/// Index into a table of in-order streams: a plan's, and a device's that runs it.
using StreamId = Id<struct StreamTag>;

}  // namespace tidepool
