// Observation: an executor's recorded times become what planners may learn from.
#pragma once

#include <span>

#include "runtime/executor.h"
#include "schedule/observation.h"

namespace tidepool {

/// What an executor recorded of iterations in a row: [iteration][steady instruction].
using TimedBlock = std::vector<std::vector<OpTiming>>;

/// Blocks of `plan`, which was made of `strategy`. All are means over the usual iterations: of
/// those that have one before them in their block the half in the middle by time. Sums of medians
/// would leave out what holds up other instructions in each iteration. Iterations that skipped an
/// op by its guard do not count for it; what ran in no usual iteration has its mean over all
/// others.
Observation observe(const Plan& plan, Strategy strategy, std::span<const TimedBlock> blocks);

}  // namespace tidepool
