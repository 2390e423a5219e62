// Observation: an executor's recorded times become what planners may learn from.
#pragma once

#include "runtime/executor.h"
#include "schedule/observation.h"

namespace tidepool {

/// Medians over recorded iterations; `timings` are an executor's, of `plan`, which was made of
/// `strategy`. The stall before a stream's first instruction counts from its last one in the
/// iteration before, so that the first recorded iteration says nothing of it. Iterations that
/// skipped an op by its guard do not count for it.
Observation observe(const Plan& plan, Strategy strategy,
                    const std::vector<std::vector<OpTiming>>& timings);

}  // namespace tidepool
