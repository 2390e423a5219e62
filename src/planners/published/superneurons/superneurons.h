// SuperNeurons: what is expensive to compute is swapped, what is cheap is computed again.
//
// Source: Wang, Ye, Zhao, Wu, Li, Song, Xu, Kraska: SuperNeurons: Dynamic GPU Memory Management for
// Training Deep Neural Networks, PPoPP 2018, section 3 (liveness analysis, unified tensor pool,
// cost-aware recomputation, dynamic workspaces).
//
// Note [SuperNeurons]. Layers are checkpoints (data, convolutions, softmax) or cheap (pooling,
// activations, local response normalisation, batch normalisation). The outputs of checkpoints leave
// the device behind their last reader in forward; those of cheap layers are dropped there and
// computed again from the checkpoint before, in one replay of the segment that keeps what it makes
// (speed-centric). All others stay. While a checkpoint goes backwards, what is needed next of the
// checkpoints before it is prefetched. At last each op takes the fastest algorithm whose workspace
// fits the bytes that are free beside it.
//
// What the paper leaves open, or this system sees otherwise:
// - Where backward does not read what a checkpoint made, but only what a cheap layer made of it (an
//   activation in place), that is the checkpoint's output: no replay runs a checkpoint.
// - Dropout is cheap too: its random numbers are those of the first run.
// - A layer is cheap or a checkpoint by the kind of the op that made the value; programs that do
//   not name kinds (recordings of some frameworks) have neither, and everything stays.
// - Joins of branches (additions, concatenations) are checkpoints: a replay that went through them
//   would reach back through all blocks of a residual network.
// - The paper replays a segment memory-centrically, from the checkpoint for each of its layers
//   anew, where the bytes its forward makes exceed l_peak (the largest working set of a layer's
//   backward pass). A strategy keeps what a replay makes until it is needed, so every segment is
//   speed-centric; a note counts those that should not be.
// - The batch's input is on the host already; it is dropped without a copy.
// - "Needed next": a value of a checkpoint is prefetched when the last checkpoint begins its
//   backward pass that does so before the value is needed, in the replay or in backward itself.
// - Algorithms are chosen where the planner may, whatever the policy: free bytes are those that the
//   budget leaves over the load of the strategy with the least workspaces.
// - The LRU tensor cache, which leaves tensors on the device as long as there is room, is an option
//   of the published system, as is recomputation alone: the planners superneurons-cache and
//   superneurons-recompute.
// - Where this does not fit the budget the streaming schedule takes its place, and a note says so.
#pragma once

#include "planners/planner.h"

namespace tidepool {

std::unique_ptr<Planner> make_superneurons();

}  // namespace tidepool
