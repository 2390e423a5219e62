// What is said of a training in the RAM of the process.
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "train/training_report.h"

namespace tidepool::cli {

/// Of a drive, so much written to it an iteration: "475 MiB written an iteration, 9.1 TB a day;
/// ...".
std::string wear_text(Bytes written, Nanos iteration);

/// Memory, file and wear, a line each.
void print_memory(const TrainingSpec& spec, const TrainingReport& report);
/// What a plan was made for.
Json memory_json(const ProcessMemory& memory);
/// Null where there is none.
Json memory_json(const TrainingReport& report);

}  // namespace tidepool::cli
