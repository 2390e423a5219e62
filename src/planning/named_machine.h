// Machines by name, perhaps with a file behind their host.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cost/machine.h"
#include "cost/spill.h"

namespace tidepool {

/// A preset. A machine file is refused: it goes with a program.
Result<Machine> preset(const std::string& name);

/// A preset, or the machine in a file whose name ends in .json.
Result<Machine> named_machine(const std::string& name);

/// The machine with the file, where one is asked for. Fails with a usage error where it has one.
Result<Machine> with_file_behind(Result<Machine> machine, const std::optional<FileTierLink>& tier);

}  // namespace tidepool
