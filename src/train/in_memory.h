// What trainings in the RAM of their process have in common, with a plan and without.
#pragma once

#include "train/training_report.h"
#include "train/training_spec.h"

namespace tidepool {

/// Whether `memory` and `spill` go together, and with the rest.
Result<void> check_memory(const TrainingSpec& spec);

/// What is loaded and planned beside the arenas takes as little as it can from now on.
void spare_memory();

MemoryReport memory_report(const ProcessMemory& process, const Program& program);

}  // namespace tidepool
