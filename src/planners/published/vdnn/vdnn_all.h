// vDNN, policy "all": every layer's input goes to the host in forward and comes back in backward.
//
// Source: Rhu, Gimelshein, Clemons, Zulfiqar, Keckler: vDNN: Virtualized Deep Neural Networks for
// Scalable, Memory-Efficient Neural Network Design, MICRO 2016, sections III-B and III-C.
//
// Note [vDNN]. Forward: a layer's input is offloaded by its last reader, beside that reader's
// computation; both streams synchronise at the layer's end. Backward: when a layer begins, the
// nearest layer before it whose input is away and not yet asked for is looked for, no further than
// the first convolution; its input is prefetched, and both streams synchronise at the end of the
// layer that asked. What is needed without having been asked for is fetched then, in full view. The
// policy neither knows a budget nor thinks about times: everything else is kept.
//
// What the paper leaves open, or this system sees otherwise:
// - Input feature maps are inputs and activations that a layer reads in forward which another has
//   made, if backward reads the same value again: not what only the layer itself saves, nor what an
//   in-place layer overwrites.
// - Classifier layers are not offloaded: those from the first fully connected layer behind the last
//   convolution on. A program without convolutions has none; there the search for the layer to
//   prefetch has no bound.
// - A copy out begins in a gap, so when the last reader is over, not while it reads. It overlaps
//   with what the layer still has to do and with the next layer, and is awaited at the end of that:
//   as much overlap as in the paper, one layer later.
// - The host has the batch's input already; it is dropped without a copy.
// - With rounds each round is a small iteration of its own.
// - (m), least workspaces, and (p), fastest algorithms, are this planner's two algorithm policies.
// - Where the policy does not fit the budget, vDNN cannot train. Here the streaming schedule takes
//   its place (Lowered::streaming), and a note says so.
#pragma once

#include "planners/planner.h"

namespace tidepool {

std::unique_ptr<Planner> make_vdnn_all();

}  // namespace tidepool
