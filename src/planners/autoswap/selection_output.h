// What the planners of AutoSwap return: a selection with a reason for each gap, and notes.
#pragma once

#include <optional>

#include "planners/autoswap/autoswap_load.h"
#include "planners/planner.h"

namespace tidepool {

/// A selection and the plan it was lowered to; no plan: nothing fitted.
struct PlacedSelection {
  LoadedSelection selection;
  std::optional<Lowered> lowered;
};

/// Without a plan the output is a strategy that lowering streams, and a note that says so. `budget`
/// is named in it.
PlannerOutput selection_output(PlacedSelection placed, const SwapCandidates& candidates,
                               Bytes budget);

}  // namespace tidepool
