// What is said of a training in the RAM of the process.
#pragma once

#include "base/json_fwd.h"
#include "train/training_report.h"

namespace tidepool::cli {

/// Memory, file and wear, a line each.
void print_memory(const TrainingSpec& spec, const TrainingReport& report);
/// Null where there is none.
Json memory_json(const TrainingReport& report);

}  // namespace tidepool::cli
