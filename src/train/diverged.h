// Losses that are no numbers any more: said once, where it happens, and training goes on.
#pragma once

#include <span>

#include "train/training_observer.h"

namespace tidepool {

/// Tells the observer of the first loss that is NaN or infinite; `first` is the number of the first
/// iteration, from 0. Returns whether there was one.
bool warn_if_diverged(std::span<const float> losses, std::int64_t first, Observer& observer);

}  // namespace tidepool
