#pragma once

#include "planners/planner.h"

namespace tidepool {

/// Swaps by search, see Note [Tide] in tide_search.h. By simulated time never slower than any
/// planner it starts from, unless that takes more than four fifths of the time limit: then it goes
/// on from what there is by then. The result depends on the seed and, unless the search ends by
/// itself, on how far it gets in the time limit. With an evaluation limit it depends on the seed
/// alone, on any number of threads (0: as many as there are cores): greedy packing only.
std::unique_ptr<Planner> make_tide(int threads = 0);

}  // namespace tidepool
