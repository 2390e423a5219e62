// The job's device as a machine: its link measured, given, or in the ratio of a GTX 1080 Ti.
#pragma once

#include "train/job.h"
#include "train/measurement.h"

namespace tidepool {

/// A real device has measured links. An emulated one has them from `link`, or from the time of one
/// VGG16 iteration at batch 100 on it, so that transfer and compute are in the ratio of a GTX 1080
/// Ti (13.2 GB/s, 81.57 ms an iteration). That time is measured once a machine and kept in the
/// cache folder, whatever the spec says of caches. Measuring it stays inside `budget`, in rounds
/// where it has to, but takes what the largest op of VGG16 needs with one sample (some 30 MiB).
Result<Machine> device_machine(const Job& job, const Budget& budget, Observer& observer);

/// The VGG16 iteration on the job's device, in the largest halved rounds that can run in the
/// budget; in rounds of one sample where none can.
Result<Job> reference_job(const Job& job, Bytes budget, Bytes alignment, Observer& observer);

}  // namespace tidepool
