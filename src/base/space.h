// Spaces: places where bytes can lie.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/id.h"

namespace tidepool {

/// Index into a table of spaces: the arenas of devices 0, 1, ... come first, in the order of the
/// devices, then the host's, then what lies below it.
using SpaceId = Id<struct SpaceTag>;

enum class SpaceKind : std::uint8_t {
  device,  ///< a device's arena: its ops use bytes here and nowhere else
  host,    ///< host memory: host ops use bytes here
  file,    ///< below host memory: bytes can only be copied
};

constexpr std::string_view to_string(SpaceKind kind) {
  switch (kind) {
    case SpaceKind::device:
      return "device";
    case SpaceKind::host:
      return "host";
    case SpaceKind::file:
      return "file";
  }
  return "?";
}

}  // namespace tidepool
