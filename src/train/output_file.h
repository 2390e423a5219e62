// Files a command writes at its end are found writable at its start.
#pragma once

#include <string>

#include "base/result.h"

namespace tidepool {

/// Whether `write_file(path, ...)` can be expected to work: a file beside `path` can be made and
/// has room. Nothing is left and nothing that exists is touched. An empty path is fine.
Result<void> check_writable(const std::string& path);

}  // namespace tidepool
