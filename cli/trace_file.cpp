#include "trace_file.h"

#include <CLI/CLI.hpp>

#include "base/bytes.h"

namespace tidepool::cli {

void add_resident_option(CLI::App& command, TraceSpec& trace) {
  const auto parse = [&trace](const std::string& text) {
    const auto bytes = parse_bytes(text);
    if (!bytes) throw CLI::ValidationError("--resident", bytes.error().message);
    trace.resident = *bytes;
  };
  command
      .add_option_function<std::string>(
          "--resident", parse,
          "bytes that were allocated before the trace and never appear in it, where the file does "
          "not say (13762836 for ../shared/data/vgg16-trace)")
      ->type_name("SIZE");
}

}  // namespace tidepool::cli
