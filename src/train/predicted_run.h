// What a training's iterations are predicted to take.
#pragma once

#include "train/preparation.h"

namespace tidepool {

/// The median of `count` iterations of a training from `first` on; the first of them starts from
/// idle streams and does not count, as where they are measured. Iterations that skip branches take
/// less time than `start.iteration_time()`, which is of one that runs them all: those that this
/// training draws are simulated, some hundred at most.
Nanos predicted_median(const Job& job, const Preparation& start, std::int64_t first,
                       std::int64_t count);

}  // namespace tidepool
