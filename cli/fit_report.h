// What tidepool fit prints.
#pragma once

#include "measure/fit_batches.h"

namespace tidepool::cli {

/// On stdout, an object with `json`. Returns the exit code.
int print_fit(const FitReport& fit, bool json);

}  // namespace tidepool::cli
