#include "planning/named_machine.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "cost/machine_json.h"

namespace tidepool {

Result<Machine> preset(const std::string& name) {
  if (name.ends_with(".json")) {
    return fail(ErrorCode::usage,
                fmt::format("`machine` {}: a machine file goes with `program`; models and traces "
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

Result<Machine> with_file_behind(Result<Machine> machine, const std::optional<FileTierLink>& tier) {
  if (!machine || !tier) return machine;
  if (machine->host() + 1 < std::ssize(machine->spaces)) {
    return fail(ErrorCode::usage,
                fmt::format("`file_tier`: machine '{}' has a file already", machine->name));
  }
  return with_file_tier(*machine, *tier);
}

}  // namespace tidepool
