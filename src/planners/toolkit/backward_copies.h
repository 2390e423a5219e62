// Copies in as AutoSwap publishes them (section IV-E): timed backwards from the accesses that need
// them, on a timeline in which nothing stalls.
//
// Note [Backward copies]. The link brings tensors back in the order of their next accesses, one
// after the other, each as late as its access and the copies behind it allow. A copy in is
// triggered by an op: the last that starts no later than the copy should. Where the tensors that
// are back early would exceed the limit while some op before the access runs, the copy waits until
// after that op. Times are cyclic: a copy for the first ops belongs into the iteration before.
#pragma once

#include <span>
#include <vector>

#include "planners/toolkit/swap_candidates.h"

namespace tidepool {

/// A hint for each pick: where its copy in is triggered. Where the load after the picks is within
/// the limit at every op, it is so with the tensors that are back early.
std::vector<CopyHint> copies_in_backwards(const SwapCandidates& candidates,
                                          std::span<const SwapPick> picks, Bytes limit);

}  // namespace tidepool
