#pragma once

#include "pack/pack.h"

namespace tidepool {

/// Largest buffer first, each in the lowest hole that takes it (SmartPool
/// section III-C).
Packing pack_first_fit(const PackProblem& problem);

}  // namespace tidepool
