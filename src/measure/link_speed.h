// The job's device as a machine: its link measured, given, or in the ratio of a GTX 1080 Ti.
//
// Of several GPUs links are also measured with all of them copying, which gives the buses that they
// share.
#pragma once

#include "job/job.h"
#include "planning/measurement.h"
#include "planning/planning_spec.h"

namespace tidepool {

/// How long VGG16 takes on the job's device, one iteration at batch 100, without copies.
struct ReferenceTime {
  Nanos iteration{};
  std::string measured;  ///< what it was estimated from, for people
};

/// Measured once a machine and kept in the cache; `reprofile` measures it anew. Stays inside
/// `budget`: VGG16 at batch 25 where that can run, else a small network, scaled by kinds of op.
/// Each of them is the same work in every budget. `infeasible` where none fits.
Result<ReferenceTime> reference_time(const Job& job, const Budget& budget, const CacheSpec& cache,
                                     Observer& observer);

/// A real device has links that are measured once, inside the budget, and kept in the cache: small
/// differences from one measurement to the next would make every profile and plan another's;
/// `reprofile` measures them anew. An emulated one has them from `link`, or from the reference
/// time, so that transfer and compute are in the ratio of a GTX 1080 Ti (13.2 GB/s, 81.57 ms an
/// iteration); the observer is told. A file of `spill` or `file_tier` is in the machine, with the
/// speeds of its disk.
Result<Machine> device_machine(const Job& job, const Budget& budget, const CacheSpec& cache,
                               Observer& observer);

}  // namespace tidepool
