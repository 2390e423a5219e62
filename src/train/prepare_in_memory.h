// Preparation inside the RAM of the whole process.
#pragma once

#include "planning/make_plan.h"
#include "planning/process_memory.h"
#include "train/preparation.h"
#include "train/training_spec.h"

namespace tidepool {

/// As `prepare`, with the arena that `memory` leaves beside all else. Planned again where code
/// and heap turn out to take more than expected; `memory` is what was found. `infeasible` names the
/// smallest `memory`.
Result<Preparation> prepare_in_memory(const Unprepared& from, const TrainingSpec& spec,
                                      ProcessMemory& memory, Observer& observer);

}  // namespace tidepool
