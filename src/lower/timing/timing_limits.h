// TimingLimits: what a time pass has to keep to.
#pragma once

#include "base/bytes.h"
#include "base/time.h"

namespace tidepool {

struct TimingLimits {
  Bytes load_limit = 0;
  bool prefetch = true;       ///< false: copies in are issued right before the calls they are for
  Nanos lead = Nanos::max();  ///< see EvaluateOptions::lead
};

}  // namespace tidepool
