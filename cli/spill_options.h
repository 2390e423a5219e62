// --memory and --spill: training in a stated amount of RAM, with a file behind it.
#pragma once

#include "cli11_fwd.h"
#include "spec_options.h"

namespace tidepool::cli {

enum class Spilling : std::uint8_t {
  in_memory,        ///< --spill needs --memory
  of_an_arena_too,  ///< or stands beside the arena of --budget
};

/// For commands with --budget.
void add_memory_options(CLI::App& command, MemorySpec& memory, SpillOptions& spill,
                        Spilling spilling = Spilling::in_memory);

}  // namespace tidepool::cli
