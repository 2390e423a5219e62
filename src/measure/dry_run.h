// A dry run: how many host bytes swapping on demand takes, without running an op or allocating
// memory.
#pragma once

#include <optional>

#include "planning/algorithm_choice.h"
#include "runtime/reactive.h"

namespace tidepool {

/// Whether `Reactive` gets through two iterations inside this budget: the first one and those after
/// it, which begin as it ended. Reserves addresses for both arenas and touches none.
bool runs_on_demand(const Program& program, const AlgorithmChoice& algorithms,
                    ReactiveBudget budget, Bytes alignment);

/// The least host bytes, to within the alignment, above `too_small` with which it does, by
/// bisection.
Bytes least_host_bytes(const Program& program, const AlgorithmChoice& algorithms, Bytes device,
                       Bytes too_small, Bytes alignment);

/// Host bytes with which it does, no more than a quarter above the least or the peak load: for who
/// has no limit but not every byte either.
Bytes ample_host_bytes(const Program& program, const AlgorithmChoice& algorithms, Bytes device,
                       Bytes alignment);

}  // namespace tidepool
