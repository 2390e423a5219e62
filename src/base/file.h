// Whole files.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tidepool {

/// The whole file, or an Error that names it and the system's reason. No more than `most` bytes are
/// read: a larger one is an error (a device may have no end).
Result<std::string> read_file(const std::string& path,
                              std::size_t most = std::numeric_limits<std::size_t>::max());

/// Writes to a temporary file beside `path` and renames it, so that a full disk or an interrupt
/// never leaves half a file.
Result<void> write_file(const std::string& path, std::string_view content);

}  // namespace tidepool
