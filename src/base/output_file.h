// Files a command writes at its end are found writable at its start, and are none that it reads.
#pragma once

#include <span>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace tidepool {

/// Whether `write_file(path, ...)` can be expected to work: a file beside `path` can be made and
/// has room for `bytes`. Nothing is left and nothing that exists is touched. An empty path is fine.
Result<void> check_writable(const std::string& path, Bytes bytes = 0);

/// Fails with `usage` when the output is one of the inputs, by whatever name: writing it would
/// destroy what was read. Empty paths are fine.
Result<void> check_no_input(const std::string& output, std::span<const std::string> inputs);

/// Fails with `usage` when two of them are one file: only the last would stay. Empty paths and
/// devices are fine.
Result<void> check_distinct(std::span<const std::string> outputs);

}  // namespace tidepool
