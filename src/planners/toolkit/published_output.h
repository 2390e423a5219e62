// What a published planner returns.
#pragma once

#include <string>
#include <string_view>

#include "planners/planner.h"

namespace tidepool {

/// The strategy with addresses inside the budget. Where there are none the published system cannot
/// train: the note says so, and the strategy is returned for `make_plan`, which streams instead
/// where that is allowed. `system`: its name in notes. The strategy is of the workload's own size.
PlannerOutput published_output(PlannerContext& context, Strategy strategy, std::string note,
                               std::string_view system);

/// The same for what has been found not to fit.
PlannerOutput cannot_train(Strategy strategy, std::string note, std::string_view system);

}  // namespace tidepool
