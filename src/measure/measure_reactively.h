// Measures a program that does not fit its budget: every op runs, tensors come and go on demand.
//
// Where the host is too small for what is swapped and has a file behind it, that goes on to the
// file.
#pragma once

#include "job/job.h"
#include "measure/profiling_task.h"
#include "planning/measurement.h"

namespace tidepool {

/// Puts op times into the job's program without using more than the budget, on device and host. For
/// a task that is `fake` intermediate numbers are made up where they would have to come back. An
/// algorithm that does not fit is given the time of its op's slowest one: it also has the most
/// workspace, so that no policy picks it. A host budget that is too small is `infeasible` and names
/// the least one that is enough for this.
Result<Measurement> measure_reactively(Job& job, const Machine& machine, const ProfilingTask& task,
                                       Observer& observer);

}  // namespace tidepool
