// Whole files.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tidepool {

/// The whole file, or an Error that names it and the system's reason.
Result<std::string> read_file(const std::string& path);

/// Writes to a temporary file beside `path` and renames it, so that a full disk or an interrupt
/// never leaves half a file.
Result<void> write_file(const std::string& path, std::string_view content);

}  // namespace tidepool
