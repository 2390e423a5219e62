#include "schedule/schedule.h"

#include <algorithm>

namespace tidepool {

SpaceId Plan::host() const {
  const auto it = std::ranges::find(arenas, SpaceKind::host, &Arena::kind);
  return static_cast<SpaceId>(it - arenas.begin());
}

}  // namespace tidepool
