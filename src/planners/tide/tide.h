#pragma once

#include "planners/planner.h"

namespace tidepool {

// Note [Tide]. Two questions take turns. Which gaps are away, under a limit on the memory load:
// asked of `LoadSearch` (tide_load.h), which begins with autoswap's plan and with what its scores
// pick. And which addresses: asked of `lower`, which may let placements share bytes wherever the
// waits cost no time by the schedule. How many bytes addresses need above the load differs much
// from state to state, so several states get little time each. The load limit goes down where their
// addresses exceed the budget and up where they do not; every third round tries the budget itself.
// From the second round on the search wants compact states: little load where the limit allows
// more, which leaves room for addresses. Rounds grow, in evaluations and in packing time, and do
// not depend on how much of either there will be: more is never worse. Copies in start as early as
// they can where that costs nothing, so that late ones are forgiven; otherwise shortly before they
// must.

/// Swaps by search. By simulated time never slower than any planner it starts from, unless that
/// takes more than four fifths of the time limit: then it goes on from what there is by then. The
/// result depends on the seed and, unless the search ends by itself, on how far it gets in the time
/// limit. With an evaluation limit it depends on the seed alone, on any number of threads (0: as
/// many as there are cores): greedy packing only.
std::unique_ptr<Planner> make_tide(int threads = 0);

}  // namespace tidepool
