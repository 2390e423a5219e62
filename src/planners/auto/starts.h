// Whose plans `auto` asks for first, and in which order: by what planners say of themselves.
#pragma once

#include "planners/registry.h"

namespace tidepool {

/// Even where there is hardly any.
inline bool plans_in_any_time(const PlannerInfo& info) {
  return info.begins_searches || info.is_quick;
}

/// Those of a smaller number begin earlier; of the same number, in the order of the list. The first
/// plans for every budget; the quick ones are done at once; what needs time has it beside the
/// others; those that take longest come last.
inline int turn_among_starts(const PlannerInfo& info) {
  if (info.begins_searches) return -3;
  if (info.is_quick) return -2;
  if (info.needs_time) return -1;
  return info.is_slow ? 1 : 0;
}

}  // namespace tidepool
