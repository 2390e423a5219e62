// --memory and --spill: training in a stated amount of RAM, with a file behind it.
#pragma once

#include "cli11_fwd.h"
#include "planning/planning_spec.h"
#include "spec_options.h"

namespace tidepool::cli {

enum class Spilling : std::uint8_t {
  in_memory,        ///< --spill needs --memory
  of_an_arena_too,  ///< or stands beside the arena of --budget
};

/// For commands with --budget.
void add_memory_options(CLI::App& command, MemorySpec& memory, SpillOptions& spill,
                        Spilling spilling = Spilling::in_memory);

/// What a user gave for `option`; 0 is refused.
Bytes size_above_0(const std::string& option, const std::string& text);
/// "450MB,500MB" or "1GB,1GB,duplex".
void parse_speeds(const std::string& option, const std::string& text, SpillOptions& file);

}  // namespace tidepool::cli
