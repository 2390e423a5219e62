// Lateness: what a device takes to begin an instruction for which all is there.
#pragma once

#include "base/time.h"

namespace tidepool {

/// How late the instructions of a stream begin.
struct Lateness {
  Nanos next{};   ///< after the one before them on the stream
  Nanos woken{};  ///< after one on another stream, for which their own was idle
};

}  // namespace tidepool
