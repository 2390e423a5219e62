#include "named_machine.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "cost/machine_json.h"

namespace tidepool::cli {

Result<Machine> preset(const std::string& name) {
  if (name.ends_with(".json")) {
    return fail(ErrorCode::usage,
                fmt::format("--machine {}: a machine file goes with --program; models and traces "
                            "take a preset (see `tidepool machines`)",
                            name));
  }
  return find_machine(name);
}

Result<Machine> named_machine(const std::string& name) {
  if (!name.ends_with(".json")) return find_machine(name);
  const auto text = read_file(name);
  if (!text) return fail(text.error());
  return read_json(*text, name, [](const JsonCursor& json) { return machine_from_json(json); });
}

}  // namespace tidepool::cli
