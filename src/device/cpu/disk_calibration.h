// How fast a disk is: measured on a spill file of its own, as copies of a training use it.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "device/spill_options.h"

namespace tidepool {

/// Measures the disk below `options.folder`, which takes a second or a few. Uses at most `memory`
/// bytes of memory, and 256 MiB of disk or less. Stated speeds are returned as they are. Errors are
/// those of BlockFile.
Result<DiskSpeeds> calibrate(const SpillOptions& options, Bytes memory);

/// Names the file system below the folder on this machine: measured speeds stay true for it.
Result<std::string> disk_identity(const std::string& folder);

/// Whether a disk that writes and reads at these speeds alone, and `both` together (bytes of both
/// directions per second while both run), rather serves both at once than in turn.
bool is_duplex(double write, double read, double both);

}  // namespace tidepool
