// What is said of a training in the RAM of the process, or with a file behind its host.
#pragma once

#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "train/training_report.h"
#include "train/training_spec.h"
#include "train/transparent.h"

namespace tidepool::cli {

/// Of a drive, so much written to it an iteration: "475 MiB written an iteration, 9.1 TB a day;
/// ...".
std::string wear_text(Bytes written, Nanos iteration);

/// Memory, file and wear, a line each.
void print_memory(const TrainingSpec& spec, const TrainingReport& report);
void print_memory(const TrainingSpec& spec, const TransparentReport& report);
/// What a plan was made for.
Json memory_json(const ProcessMemory& memory);
/// What was measured; null where there is none.
Json memory_json(const std::optional<MemoryReport>& memory, const std::optional<FileReport>& file);

/// The file behind the host and wear; nothing where there is no such file.
void print_file_tier(const TrainingSpec& spec, const TrainingReport& report);
/// Null where there is none.
Json file_tier_json(const TrainingSpec& spec, const TrainingReport& report);

}  // namespace tidepool::cli
