// memonger: sublinear memory by recomputation.
//
// Source: Chen, Xu, Zhang, Guestrin: Training Deep Nets with Sublinear Memory Cost,
// arXiv:1604.06174, 2016, section 4 (Algorithm 3, "Memory Planning with Budget"), and the search
// for its threshold as the authors' program "memonger" has it (search_plan).
//
// Note [memonger]. Forward is walked in order and the bytes of what its ops make are added up.
// Where the sum has passed a threshold, the value that is passed on there is kept and the sum
// begins anew; all other feature maps are dropped after forward and computed again, block by block,
// when backward comes to their block. Nothing is copied. The first threshold is 0, the next two are
// sqrt(saved bytes * largest block / 2) of the plan before; then there are six steps from the
// smallest of their largest blocks to sqrt(2) times what the third plan gives. The plan of the
// least memory is taken, whatever the budget.
//
// What the paper leaves open, or this system sees otherwise:
// - Candidates for a cut are the places where one single value goes on forwards, and backward reads
//   that value too: so every block can be made again from the cut before it. A residual block is
//   not cut inside.
// - Memory is the peak load of the expanded strategy, without addresses.
// - A recomputed value stays until its last reader, so a block is made once, also where its first
//   value in backward needs only a part of it.
// - What the host fed stays, and so does what no op may make again.
// - With rounds each round has blocks of its own; the threshold is the same.
#pragma once

#include "planners/planner.h"

namespace tidepool {

std::unique_ptr<Planner> make_memonger();

}  // namespace tidepool
