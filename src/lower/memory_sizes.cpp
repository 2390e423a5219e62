#include "lower/memory_sizes.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidepool {

Result<Budget> within_memory(const Machine& machine, Budget budget) {
  if (is_preset(machine)) return budget;
  const Budget wanted = budget;
  for (const MemorySpace& space : machine.spaces) {
    if (space.bytes == 0 || space.kind == SpaceKind::file) continue;
    Bytes& part = space.kind == SpaceKind::device ? budget.device : budget.host;
    const bool unlimited =
        space.kind == SpaceKind::device ? wanted.device >= kNoDeviceLimit : wanted.host == 0;
    if (unlimited) {
      part = part == 0 ? space.bytes : std::min(part, space.bytes);
    } else if (part > space.bytes) {
      return fail(
          ErrorCode::usage,
          fmt::format(
              "the {} budget of {} B ({}) is more than the memory of machine '{}': {} B ({})",
              to_string(space.kind), part, format_bytes(part), machine.name, space.bytes,
              format_bytes(space.bytes)));
    }
  }
  return budget;
}

}  // namespace tidepool
