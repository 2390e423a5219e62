#pragma once

#include "planners/planner.h"

namespace tidepool {

// Note [Auto]. The published planners and AutoSwap plan first, side by side, for half of the time
// limit; what one has by its end is a start, what has not ended counts for nothing. From the
// fastest of these plans the search of `tide` goes on (tide_search.h) over all four decisions:
// keep, swap, drop, recompute. All strategies are starts of its states, those of slower plans too.
// Algorithms are the policy's, for the starts too. `tide` is no start, as this is the same search
// with more decisions, nor is `random`.

/// Keeps, swaps, drops and recomputes by search. By simulated time never slower than any planner
/// that ended within its part of the limit. With an evaluation limit the result depends on the seed
/// alone, on any number of threads (0: as many as there are cores). Where it may not swap it only
/// picks the fastest plan.
std::unique_ptr<Planner> make_auto(int threads = 0);

}  // namespace tidepool
