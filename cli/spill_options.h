// --memory and --spill: training in a stated amount of RAM, with a file behind it.
#pragma once

#include "spec_options.h"

namespace tidepool::cli {

/// For commands with --budget.
void add_memory_options(CLI::App& command, MemorySpec& memory, SpillOptions& spill);

}  // namespace tidepool::cli
