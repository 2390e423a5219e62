#pragma once

#include "planners/planner.h"

namespace tidepool {

// Note [Auto]. The published planners and AutoSwap plan first, side by side, for a quarter of the
// time limit, of programs of many ops a fifth; what one has by its end is a start, what has not
// ended counts for nothing. Large programs leave time for AutoSwap alone, once with the policy's
// algorithms and once with those that are worth their workspaces. From the
// fastest of these plans the search of `tide` goes on (tide_search.h) over all four decisions:
// keep, swap, drop, recompute, and over the algorithms of ops where it may. All strategies are
// starts of its states, those of slower plans too, and those that have no addresses in the budget;
// a complete plan that has no strategy to start from still counts as it is. `tide` is no start, as
// this is the same search with more decisions, nor is `random`, nor are those that learn: an
// episode of a network that is given comes at the end.
//
// Sub-batches (auto/size_order.h) come last, as asking for one may cost a measurement. Planners
// that choose a sub-batch plan where moDNN would take another. Only where one is faster, or the
// usual size's best plan takes clearly longer than its ops do without any stall, with their fastest
// algorithms of whatever workspace, a few sizes get a part of the limit each, AutoSwap, moDNN and
// the search alone; the best size gets the rest, or half of it where another one, whose ops take
// less without any stall, has clearly more to gain. With a short limit the usual size is one of
// them. Times are those of whole iterations, so that sizes compare. What asking for a size takes is
// not the search's: the limit begins again where it ends.
//
// In the end short searches from the plan without one freedom each say what that was worth.

/// Keeps, swaps, drops and recomputes by search, chooses algorithms and sub-batch. By simulated
/// time never slower than any planner that ended within its part of the limit; one that takes
/// longer may be faster. With an evaluation limit the result depends on the seed alone, on any
/// number of threads (0: as many as there are cores). Where it may not swap it only picks the
/// fastest plan.
std::unique_ptr<Planner> make_auto(int threads = 0);

}  // namespace tidepool
