// vDNN+: vDNN with moDNN's choice of the sub-batch, as moDNN is compared with it.
//
// Source: Chen, Chen, Han, Hu: moDNN, IEEE TPDS 30(3), 2019, section 7.2: vDNN has all or the
// convolutional layers' feature maps leave "once the memory budget cannot hold all the involved
// data"; vDNN+ is that in sub-batches of moDNN's choice. The parts are those of
// planners/published/modnn/sub_batch.h and offload_policy.h.
//
// What the paper leaves open, or this system sees otherwise:
// - The involved data are everything that one round uses, all at once, with the largest workspace;
//   as in the paper's ideal case nothing is freed (moDNN, section 7).
// - Of the two policies the faster one, with the fastest algorithms. Where neither fits with those,
//   with the algorithms of the least workspace.
// - A size that equation 8 accepts may not train so; then the next smaller one is tried. Where the
//   equation accepts none, the smallest is taken.
// - Nothing here asks the clock.
#pragma once

#include "planners/planner.h"

namespace tidepool {

std::unique_ptr<Planner> make_vdnn_plus();

}  // namespace tidepool
