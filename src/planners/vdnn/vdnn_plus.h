// vDNN+: vDNN with moDNN's choice of the sub-batch.
//
// Source: Chen, Chen, Han, Hu: moDNN, IEEE TPDS 30(3), 2019, section 7.2, which compares with it;
// the parts are those of planners/modnn/sub_batch.h and vdnn_dyn.h.
//
// What the paper leaves open, or this system sees otherwise:
// - Which of vDNN's policies: the dynamic one, which tries the others and the algorithms.
// - A downgrade of an algorithm holds for the same op in all rounds, and there are no more of them
//   when the time limit is over.
// - vDNN offloads whole layers' inputs and knows no windows of tasks, so a size that equation 8
//   accepts may not train; then the next smaller one is tried.
// - Where equation 8 accepts no size, for the fastest algorithms' workspaces, all are tried: vDNN
// may
//   downgrade those.
#pragma once

#include "planners/planner.h"

namespace tidepool {

std::unique_ptr<Planner> make_vdnn_plus();

}  // namespace tidepool
