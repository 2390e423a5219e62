// Capuchin: swaps where copies can be hidden, recomputation where that costs less.
//
// Source: Peng, Shi, Dai, Jin, Ma, Xiong, Yang, Qian: Capuchin: Tensor-based GPU Memory Management
// for Deep Learning, ASPLOS 2020, sections 4 (measured execution, guided execution) and 5.
//
// Note [Capuchin]. A first iteration runs with evictions on demand and measures when tensors are
// accessed; the waiting is subtracted. Then:
// - Candidates are gaps between two accesses of a tensor that lie over the memory peak.
// - With T the time of a copy, a gap from an access that ends at t1 to one that begins at t2 has
//   the free time FT = (t2 - T) - (t1 + T). Swaps are taken in the order of falling FT, while it
//   is not negative, until enough is saved.
// - A copy in is triggered by the last access before it has to start; where it would overlap with
//   another copy in, it starts earlier by as much; it does not start inside of the memory peak.
// - Where that is not enough, each candidate's exposed swap time is compared with what its
//   recomputation takes, from its nearest sources; the cheaper way counts. Candidates are taken by
//   the bytes they save for each second lost (MSPS); after each choice the recomputations that had
//   the chosen tensor for a source are counted anew.
// - Feedback: a copy in that was late is triggered earlier by 5 % of T in the next iteration.
//
// What the paper leaves open, or this system sees otherwise:
// - The first iteration is not run: the times are those of the ops without stalls, which is what is
//   left of the measured ones once waiting is subtracted, and the load is that of all tensors kept.
//   What has to be saved is the load's excess over the limit at its highest op, as long as there is
//   one: a program may have several peaks.
// - The link is modelled by the times at which it is busy with the copies of the swaps chosen so
//   far, on the timeline without stalls: a copy out takes the first time after t1 that is free for
//   it, a copy in the last before t2. Copies out and in have a lane each, one for both where the
//   link is not duplex. Exposed swaps take their times too.
// - A swap is hidden when FT is not negative and its copy in does not begin before its copy out
//   ends; by how much it does is its exposed time. That has no upper limit: behind many other
//   copies it is more than both of its own take, which is where recomputation wins.
// - What an exposed swap or a recomputation delays is not modelled: neither gives later copies
//   time.
// - "Inside the peak": a copy in is not triggered before an op at which the load with the tensor
//   back would exceed the limit.
// - A value that was recomputed for another stays until its own next access, so it is not counted
//   once more for each that reads it.
// - The limit begins at the budget and goes down by what the addresses exceed it until they fit, a
//   recomputation needs memory too; where that ends with nothing, by 2 % of the budget at a time.
// - Feedback iterations are run on the times of the evaluator first, 20 at most, and the best
//   counts. A training then observes some iterations of the plan, gives the planner what it
//   measured and goes on with the plan corrected by that, some times over (train/trials.h). A
//   plan is made anew for each, not for each iteration: so a copy in moves by as many steps of 5 %
//   of T as the measured stall before its reader is long, which the paper's iterations would do one
//   by one. A stall of less than a step is none, nor is what the device is idle between most ops.
//   The timeline is the profile's: where the ops took less time on the device, the stall counts for
//   more in the same ratio.
// - Where nothing fits the streaming schedule takes its place, and a note says so.
#pragma once

#include "planners/planner.h"

namespace tidepool {

std::unique_ptr<Planner> make_capuchin();

}  // namespace tidepool
