// Where a program's times come from: a profile file, the cache, or a measurement now.
#pragma once

#include <string>

#include "cache.h"
#include "job.h"

namespace tidepool::cli {

/// Iterations whose medians become a profile, where the user does not say.
inline constexpr int kProfileIterations = 3;

struct ProfilingArguments {
  CacheArguments cache;
  std::string file;  ///< a profile file to use instead of measuring; may be empty
};

struct ProfilingTask {
  int iterations = kProfileIterations;
  bool all_algorithms = false;
  /// Measuring uses no more: where not everything can be kept, tensors are swapped on demand.
  Budget budget = no_limit();
};

/// Which profile was used.
struct ProfileSource {
  std::string from;  ///< "file", "cache" or "measured"
  Measurement how;   ///< not known of a file
};
Json to_json(const ProfileSource& source);

/// Puts times into the job's program. A file of another device or program is refused.
Result<ProfileSource> obtain_profile(Job& job, const Machine& machine, const ProfilingTask& task,
                                     const ProfilingArguments& arguments, ProgressSink& progress);

/// Fails, naming both, when a file's fingerprint is not that of this device.
Result<void> check_fingerprint(const std::string& path, const std::string& of_file,
                               const std::string& of_device);
/// Fails when a file is of another program; times do not matter.
Result<void> check_program(const std::string& path, const Program& of_file, const Program& wanted);

}  // namespace tidepool::cli
