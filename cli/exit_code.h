// The exit codes of this program. The only place that knows them.
#pragma once

#include "base/result.h"

namespace tidepool::cli {

inline constexpr int kOk = 0;
/// Nobody reads stdout any more: what a shell says of a program that SIGPIPE ended.
inline constexpr int kPipeClosed = 141;

/// The signal that `interrupted()` (context.h) has seen; SIGINT where it has seen none.
int interrupting_signal();

inline int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::runtime:
      return 1;
    case ErrorCode::usage:
      return 2;
    case ErrorCode::bad_input:
      return 3;
    case ErrorCode::infeasible:
      return 4;
    case ErrorCode::check_failed:
      return 5;
    case ErrorCode::interrupted:
      return 128 + interrupting_signal();
  }
  return 1;
}

}  // namespace tidepool::cli
