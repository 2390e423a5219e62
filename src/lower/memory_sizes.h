// What a machine's own memory leaves of a budget.
#pragma once

#include "lower/lower.h"

namespace tidepool {

/// A budget for this machine: where there is no limit, the memory is one. Fails where the budget is
/// above the memory of a device or of the host, naming both. Sizes of 0 are not known. Presets do
/// not count: people plan for the card they would like to have.
Result<Budget> within_memory(const Machine& machine, Budget budget);

}  // namespace tidepool
