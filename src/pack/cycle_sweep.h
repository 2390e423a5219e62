// The sweep (sweep.h) over a cycle that repeats: holds instead of lifetimes.
#pragma once

#include "pack/pack.h"

namespace tidepool {

/// By begin, each buffer in the smallest hole there is then. What is held at the start of the cycle
/// has its place before all others, which may use it while it is not held. In time n log n and a
/// little more where addresses are fragmented. The problem has holds and nothing fixed; it is not
/// asked whether to stop.
Packing pack_by_cycle_sweep(const PackProblem& problem);

}  // namespace tidepool
