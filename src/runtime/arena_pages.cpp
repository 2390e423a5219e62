#include "runtime/arena_pages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/at.h"

namespace tidepool {
namespace {

/// Begin and end of what lies in this space between iterations, by offset.
std::vector<std::pair<Bytes, Bytes>> ranges_at_rest(const Plan& plan, SpaceId space) {
  std::vector<std::pair<Bytes, Bytes>> ranges;
  for (const PlacementId id : plan.boundary) {
    const Placement& p = plan.placements[at(id)];
    if (p.space == space) ranges.emplace_back(p.offset, p.offset + p.bytes);
  }
  std::ranges::sort(ranges);
  return ranges;
}

}  // namespace

void discard_between_iterations(const Plan& plan, SpaceKind kind, Device& device) {
  for (SpaceId space = 0; at(space) < plan.arenas.size(); ++space) {
    if (plan.arenas[at(space)].kind != kind) continue;
    Bytes free = 0;
    const auto give_back_until = [&](Bytes end) {
      if (end > free) device.discard({space, free}, end - free);
    };
    for (const auto& [begin, end] : ranges_at_rest(plan, space)) {
      give_back_until(begin);
      free = std::max(free, end);
    }
    give_back_until(plan.arenas[at(space)].bytes);
  }
}

void populate_devices(const Plan& plan, Device& device) {
  for (SpaceId space = 0; at(space) < plan.arenas.size(); ++space) {
    const Arena& arena = plan.arenas[at(space)];
    if (arena.kind == SpaceKind::device) device.populate({space, 0}, arena.bytes);
  }
}

}  // namespace tidepool
