// What a published planner returns.
#pragma once

#include <string>
#include <string_view>

#include "planners/planner.h"

namespace tidepool {

/// The strategy with addresses inside the budget, or `cannot_train`. It is of the workload's own
/// size.
Result<PlannerOutput> published_output(PlannerContext& context, const Strategy& strategy,
                                       std::string note, std::string_view system);

/// Where the published system cannot train, or was stopped before it had a plan: the streaming
/// schedule, and the note says so. Fails where that does not fit either, or is not allowed. `why`:
/// the beginning of the note's sentence. `system`: its name in notes.
Result<PlannerOutput> cannot_train(PlannerContext& context, std::string why,
                                   std::string_view system);

}  // namespace tidepool
