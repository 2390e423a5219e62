// Machines as the user names them.
#pragma once

#include <string>

#include "cost/machine.h"

namespace tidepool::cli {

/// A preset. Machine files are read for programs only: models and traces have no use for their
/// tables.
Result<Machine> preset(const std::string& name);
/// A preset, or a machine file.
Result<Machine> named_machine(const std::string& name);

}  // namespace tidepool::cli
