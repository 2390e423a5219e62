#pragma once

#include "pack/pack.h"

namespace tidepool {

/// Largest buffer first, each in the smallest hole that takes it (ties: the lowest) (SmartPool
/// section III-C).
Packing pack_best_fit(const PackProblem& problem);

}  // namespace tidepool
