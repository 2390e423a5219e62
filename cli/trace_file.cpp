#include "trace_file.h"

#include <CLI/CLI.hpp>

#include "base/file.h"

namespace tidepool::cli {

void add_resident_option(CLI::App& command, TraceArguments& arguments) {
  command.add_option("--resident", arguments.resident,
                     "bytes that were allocated before the trace and never appear in it, where the "
                     "file does not say (13762836 for ../shared/data/vgg16-trace)");
}

Result<Recording> load_trace(const TraceArguments& arguments) {
  const auto text = read_file(arguments.file);
  if (!text) return fail(text.error());
  return load_trace(arguments, *text);
}

Result<Recording> load_trace(const TraceArguments& arguments, std::string_view text) {
  auto recording = read_recording(text, arguments.file);
  if (!recording || arguments.resident.empty()) return recording;
  const auto resident = parse_bytes(arguments.resident);
  if (!resident) return fail(resident.error());
  if (*resident > kMostTraceBytes) return fail(ErrorCode::usage, "--resident is too large");
  recording->resident = *resident;
  return recording;
}

}  // namespace tidepool::cli
