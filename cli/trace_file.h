// A trace file as the user names it, for the commands that take one.
#pragma once

#include "cli11_fwd.h"
#include "context.h"
#include "trace/recording.h"

namespace tidepool::cli {

struct TraceArguments {
  std::string file;
  std::string resident;  ///< a size; empty: what the file says
};

/// --resident.
void add_resident_option(CLI::App& command, TraceArguments& arguments);

/// Reads the file; --resident overrides what it says.
Result<Recording> load_trace(const TraceArguments& arguments);
/// The same from the file's text.
Result<Recording> load_trace(const TraceArguments& arguments, std::string_view text);

}  // namespace tidepool::cli
