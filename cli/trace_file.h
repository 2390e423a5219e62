// A trace file as the user names it, for the commands that take one.
#pragma once

#include "cli11_fwd.h"
#include "planning/file_subject.h"

namespace tidepool::cli {

/// --resident.
void add_resident_option(CLI::App& command, TraceSpec& trace);

}  // namespace tidepool::cli
