// The disk behind `spill` or `file_tier` as a link: stated, kept from an earlier run, or measured.
#pragma once

#include "cost/spill.h"
#include "train/observer.h"
#include "train/training_spec.h"

namespace tidepool {

/// Whether a device of this kind can have a file there at all, before anything is made.
Result<void> check_spill(const DeviceKind& kind, const SpillOptions& spill);
/// The same of a file behind its host.
Result<void> check_file_tier(const DeviceKind& kind, const SpillOptions& tier);

/// Measured inside `memory`, and kept for a day; `reprofile` measures anew. What is stated is not
/// measured. A folder whose files are in memory is a usage error.
Result<DiskSpeeds> disk_speed(const DeviceKind& kind, const SpillOptions& spill, Bytes memory,
                              const CacheSpec& cache, Observer& observer);

/// With the size that the file may have now.
SpillLink spill_link(const DiskSpeeds& speed, const SpillOptions& spill);
FileTierLink file_tier_link(const DiskSpeeds& speed, const SpillOptions& tier);

}  // namespace tidepool
