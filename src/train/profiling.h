// Where a program's times come from: a profile file, the cache, or a measurement now.
#pragma once

#include <string>

#include "train/cache.h"
#include "train/job.h"

namespace tidepool {

struct ProfilingSource {
  const Cache& cache;
  bool reprofile = false;
  std::string file;  ///< a profile file to use instead of measuring; may be empty
};

/// Which profile was used.
struct ProfileSource {
  std::string from;  ///< "file", "plan" (of a plan file), "cache" or "measured"
  Measurement how;   ///< of a file only whether it is fake is known
};

Result<Profile> load_profile_file(const std::string& path);

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

/// Fails, naming both, when a file's fingerprint is not that of this device.
Result<void> check_fingerprint(const std::string& path, const std::string& of_file,
                               const std::string& of_device);
/// Fails when a file is of another program; times do not matter.
Result<void> check_program(const std::string& path, const Program& of_file, const Program& wanted);

}  // namespace tidepool
