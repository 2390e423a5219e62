// Measures a program that does not fit its budget: every op runs, tensors come and go on demand.
#pragma once

#include "cache.h"
#include "job.h"

namespace tidepool::cli {

/// Puts op times into the job's program without using more than the budget, on device and host. An
/// algorithm that does not fit is given the time of its op's slowest one: it also has the most
/// workspace, so that no policy picks it.
Result<Measurement> measure_reactively(Job& job, const Machine& machine, const Budget& budget,
                                       int iterations, bool all, ProgressSink& progress);

}  // namespace tidepool::cli
