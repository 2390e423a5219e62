// Where a program's times come from: a profile file, the cache, or a measurement now.
#pragma once

#include <string>

#include "job/job.h"
#include "measure/profiling_task.h"
#include "planning/cache.h"
#include "planning/measurement.h"

namespace tidepool {

struct ProfilingSource {
  const Cache& cache;
  bool reprofile = false;
  std::string file;  ///< a profile file to use instead of measuring; may be empty
};

/// Puts times into the job's program, without using more than the task's budget. Of many rounds a
/// few are measured. A file of another device or program is refused.
Result<ProfileSource> obtain_profile(Job& job, const Machine& machine, const ProfilingTask& task,
                                     const ProfilingSource& source, Observer& observer);

struct TimedProgram {
  Program program;
  ProfileSource source;
};
/// The times of the job's batch in other rounds. No file is of that.
Result<TimedProgram> profile_in_rounds(const Job& job, std::int64_t sub_batch,
                                       const Machine& machine, const ProfilingTask& task,
                                       const ProfilingSource& source, Observer& observer);

}  // namespace tidepool
