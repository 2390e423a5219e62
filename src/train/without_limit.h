// The same training without a limit on memory, in a process of its own: what a training inside
// `memory` is compared with. That one may not take more for a comparison.
#pragma once

#include "base/result.h"
#include "base/spread.h"
#include "train/training_observer.h"
#include "train/training_spec.h"

namespace tidepool {

/// What an iteration takes with all the memory there is, and nothing in files. Forks:
/// call it before the process has other threads. Fails with `runtime` where that process is ended,
/// as the kernel does it where there is not so much memory; as that training fails; or with
/// `interrupted`.
Result<Spread> time_without_limit(const TrainingSpec& spec, Observer& observer);

}  // namespace tidepool
