// Help in sections: work, budget, planner, files, output. Advanced options are shown by --help-all.
#pragma once

#include "cli11_fwd.h"

namespace tidepool::cli {

/// Before the commands are added.
void begin_help(CLI::App& app);
/// When all have their options.
void group_options(CLI::App& app);

}  // namespace tidepool::cli
