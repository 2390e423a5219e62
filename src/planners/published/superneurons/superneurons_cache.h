// SuperNeurons, swapping only, by its tensor cache: device memory is a cache of what is on the
// host.
//
// Source: Wang and others: SuperNeurons, PPoPP 2018, section 3.3 (unified tensor pool and tensor
// cache, algorithm 2: least recently used); the point of swapping alone that the deep Q-network
// paper (section 5.1) has of it.
//
// Note [SuperNeurons' cache]. What checkpoints pass on (superneurons.h) may leave. Nothing
// does as long as all fits. Where an op's allocations do not fit, tensors leave until they do, the
// least recently used first, sparing those that the op accesses; the op waits for these copies.
// What is away comes back when an op accesses it, and not before: that op waits, too. Where both
// copies of a tensor are the same it leaves without one.
//
// What the paper leaves open, or this system sees otherwise:
// - In the whole system other tensors leave by the same list, but what cheap layers made is not
//   worth its transfer (section 3.4): without recomputation it stays.
// - The list is run over one iteration when the plan is made, and its evictions are the plan's:
// each
//   iteration is the same. It begins with nothing away.
// - Where addresses do not fit, though the load does, the cache is run again for less memory.
// - Algorithms as superneurons chooses them: the fastest for which there is room afterwards. The
//   cache fills the memory, so that there is little.
// - Where nothing fits the streaming schedule takes its place, and a note says so.
#pragma once

#include "planners/planner.h"

namespace tidepool {

std::unique_ptr<Planner> make_superneurons_cache();

}  // namespace tidepool
