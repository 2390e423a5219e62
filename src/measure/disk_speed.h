// The disk behind `spill` or `file_tier` as a link: stated, kept from an earlier run, or measured.
#pragma once

#include "base/observer.h"
#include "cost/spill.h"
#include "job/device_kind.h"
#include "planning/planning_spec.h"

namespace tidepool {

/// Measured inside `memory`, and kept for a day; `reprofile` measures anew. What is stated is not
/// measured. A folder whose files are in memory is a usage error.
Result<DiskSpeeds> disk_speed(const DeviceKind& kind, const SpillOptions& spill, Bytes memory,
                              const CacheSpec& cache, Observer& observer);

/// With the size that the file may have now.
SpillLink spill_link(const DiskSpeeds& speed, const SpillOptions& spill);
FileTierLink file_tier_link(const DiskSpeeds& speed, const SpillOptions& tier);

}  // namespace tidepool
