// A local search over placement orders.
#pragma once

#include "base/stop.h"
#include "pack/pack.h"

namespace tidepool {

/// First fit in `order`, again and again: whatever ends above `target` moves forward in the order
/// by chance (Joslin and Clements, "Squeaky wheel optimization", 1999). Keeps the smallest packing
/// in `best`; a round costs one first fit. Ends at the target, after `rounds`, or when `stop` says
/// so, which is asked before every round. `order` is left where the search ended. Deterministic for
/// a seed unless stopped. True when `best` became smaller.
bool squeak(const PackProblem& problem, std::vector<std::int32_t>& order, Bytes target,
            std::uint64_t seed, int rounds, const Stop& stop, Packing& best);

}  // namespace tidepool
