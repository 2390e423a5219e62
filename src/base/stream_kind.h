#pragma once

#include <cstdint>

namespace tidepool {

/// What an in-order stream carries.
enum class StreamKind : std::uint8_t { compute, copy, host };

}  // namespace tidepool
