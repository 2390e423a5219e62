// vDNN, policy "conv": the inputs of convolutions go to the host in forward and come back in
// backward. As "all" (vdnn_all.h, Note [vDNN]; the paper's section III-C), for fewer tensors: those
// whose copies the long convolutions hide best. An input that a convolution and another layer read
// is offloaded behind its last reader. A program without ops named convolutions offloads nothing.
#pragma once

#include "planners/planner.h"

namespace tidepool {

std::unique_ptr<Planner> make_vdnn_conv();

}  // namespace tidepool
