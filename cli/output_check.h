// What a command is told to write replaces nothing that took work to make.
#pragma once

#include <string>

#include "base/result.h"

namespace tidepool::cli {

/// As `check_writable`; and a checkpoint is replaced by trainings alone. An empty path is fine.
Result<void> check_output(const std::string& path);

}  // namespace tidepool::cli
