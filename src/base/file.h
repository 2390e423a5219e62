// Whole files.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tidepool {

/// The whole file, or an Error that names it and the system's reason. No more than `most` bytes are
/// read: a larger one is an error (a device may have no end).
Result<std::string> read_file(const std::string& path,
                              std::size_t most = std::numeric_limits<std::size_t>::max());

/// Where a symbolic link leads, also one to what is not there yet; other paths as they are.
std::string followed(const std::string& path);

/// Writes to a temporary file beside `path` and renames it, so that a full disk or an interrupt
/// never leaves half a file. A symbolic link stays one: what it names is written.
Result<void> write_file(const std::string& path, std::string_view content);

/// Takes the next bytes of a file; false when they cannot be written: nothing more is to be given.
using FileSink = std::function<bool(std::string_view)>;
/// The same for what is too large to be in memory: `produce` gives it in pieces. Hardly any of what
/// was written stays in the page cache.
Result<void> write_file(const std::string& path,
                        const std::function<void(const FileSink&)>& produce);

}  // namespace tidepool
