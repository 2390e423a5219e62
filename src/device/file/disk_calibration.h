// How fast a disk is: measured on a spill file of its own, as copies of a training use it.
#pragma once

#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "device/spill_options.h"

namespace tidepool {

/// Measures the disk below `options.folder`, in about five seconds or less. Uses at most `memory`
/// bytes of memory, or the few MiB that one transfer takes, and 256 MiB of disk or less. Stated
/// speeds are returned as they are. Errors are those of BlockFile.
Result<DiskSpeeds> calibrate(const SpillOptions& options, Bytes memory);

/// What went each way while both directions ran at the same time.
struct BothDirections {
  Bytes written = 0;
  Bytes read = 0;
  double seconds = 0;
};

/// Whether a disk that writes and reads so many bytes per second alone serves both directions at
/// once rather than in turn: whichever tells better how long `both` took.
bool is_duplex(double write, double read, const BothDirections& both);

/// The fewest transfers at the same time that are within a tenth of the fastest. `speeds`: bytes
/// per second with 1, 2, 4, ... of them.
int best_depth(std::span<const double> speeds);

}  // namespace tidepool
