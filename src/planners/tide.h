#pragma once

#include "plan/planner.h"

namespace tidepool {

// Note [Tide]. A search over which gaps are away, on the evaluator, under the budget's load limit.
// A value that leaves twice unchanged is copied out once. The search starts from the shares of the
// fluid relaxation (bound/fluid.h) and from what the other planners find, and anneals: it flips
// single gaps, exchanges two, and looks where the compute stream stalls. It stops when nothing
// stalls, or at the time limit. Then whatever is away for nothing comes back, and the strategy is
// lowered; where the addresses need more than the load, the search goes on under a tighter limit.

/// Swaps by search. By simulated time never slower than any planner it starts from. The result
/// depends on the seed and, unless the search ends by itself, on how far it gets in the time limit.
std::unique_ptr<Planner> make_tide();

}  // namespace tidepool
