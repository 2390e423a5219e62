#pragma once

#include "planners/planner.h"

namespace tidepool {

// Note [Tide]. Two questions take turns. Which gaps are away, under a limit on the memory load:
// asked of `LoadSearch` (tide_load.h), first under the budget itself. And which addresses: asked of
// `lower`, which may let placements share bytes wherever the waits cost no time by the schedule.
// How many bytes addresses need above the load differs much from state to state, so many states get
// little time each, one on every thread. The load limit goes down where their addresses exceed the
// budget and up where they do not. From the second limit on the search wants compact states: little
// load where the limit allows more, which leaves room for addresses. Copies in start as early as
// they can where that costs nothing, so that late ones are forgiven; otherwise shortly before they
// must.

/// Swaps by search. By simulated time never slower than any planner it starts from. The result
/// depends on the seed and, unless the search ends by itself, on how far it gets in the time limit.
/// With an evaluation limit it depends on the seed alone: one thread, and greedy packing only.
std::unique_ptr<Planner> make_tide(int threads = 0);

}  // namespace tidepool
