#pragma once

#include "planners/planner.h"

namespace tidepool {

/// AutoSwap and SmartPool together as they were published (arXiv:1903.06631, sections IV and V):
/// gaps are picked for the limit itself, by the combination of scores that Bayesian optimisation
/// finds; copies out of all of them leave at once, copies in are timed backwards from the next
/// access; what allocates waits where memory is not free. Then the addresses, by best fit. The
/// paper's limit is on the load;
/// ours is on the footprint, so the limit goes down by what the addresses exceed it by until they
/// fit. Nothing else is tried: `autoswap` does more.
std::unique_ptr<Planner> make_autoswap_published();

}  // namespace tidepool
