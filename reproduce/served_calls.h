// What mallocs and frees of a recorded iteration take, really: served by a Session that has planned
// the iteration, by the malloc of this process, by those of other libraries, by CnMem's policy.
#pragma once

#include <optional>
#include <string>

#include "reproduction.h"

namespace tidepool::reproduce {

/// Of one call, in nanoseconds.
struct CallTimes {
  double median = 0;
  double percentile_99 = 0;
  double mean = 0;
};

struct ServedCalls {
  std::int64_t mallocs = 0;  ///< of an iteration
  std::optional<CallTimes> session;
  std::string why_no_session;
  CallTimes own_malloc;
  std::optional<CallTimes> jemalloc, tcmalloc;  ///< none: the library is not installed
  CallTimes cnmem;
};

ServedCalls serve_calls(const Work& work, const Arguments& arguments);

/// What `serve_calls` runs once more, with another malloc in the process (see LD_PRELOAD): prints
/// `{"schema": 1, "library": ..., "median_ns": ..., "percentile_99_ns": ..., "mean_ns": ...}`.
inline constexpr const char* kTimeMalloc = "time-malloc";
Result<void> time_own_malloc(const Arguments& arguments);

}  // namespace tidepool::reproduce
