// vDNN's dynamic policy in rounds of moDNN's choice: a rival for moDNN that is stronger than the
// one of its paper (vdnn_plus.h). It keeps everything where what is live at a time fits, and
// downgrades algorithms op by op.
//
// The parts are those of planners/published/modnn/sub_batch.h and vdnn_dyn.h. A downgrade of an
// algorithm holds for the same op in all rounds, and there are no more of them when the time limit
// is over. Where equation 8 accepts no size, for the fastest algorithms' workspaces, all are tried:
// vDNN may downgrade those.
#pragma once

#include "planners/planner.h"

namespace tidepool {

std::unique_ptr<Planner> make_vdnn_plus_live();

}  // namespace tidepool
