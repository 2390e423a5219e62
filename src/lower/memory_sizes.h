// What a machine's own memory leaves of a budget.
#pragma once

#include <string>

#include "base/result.h"
#include "lower/budget.h"
#include "schedule/schedule.h"

namespace tidepool {

/// A budget for this machine: where a space has no limit, its memory is one, and where a device has
/// only the first one's number. Fails where the budget of a space is above its memory, naming the
/// space and both. Sizes of 0 are not known. Presets do
/// not count: people plan for the card they would like to have.
Result<Budget> within_memory(const Machine& machine, const Budget& wanted);

/// The first space of which a plan's arenas need more than this machine's memory: names it and both
/// sizes, for people. Empty where the plan fits, and for presets.
std::string beyond_memory(const Machine& machine, const Plan& plan);

}  // namespace tidepool
