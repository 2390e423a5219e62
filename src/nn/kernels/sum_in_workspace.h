// Ops that add to gradients, by kernels that only write: those gradients go to the workspace and are
// added from there.
#pragma once

#include <memory>

#include "nn/kernel.h"

namespace tidepool::nn {

/// Null where the list has no kernel for the op that only writes. The algorithms are those of that
/// op, their workspaces larger by the gradients.
std::unique_ptr<Kernel> sum_in_workspace(const KernelList& kernels, const OpDesc& adding);

}  // namespace tidepool::nn
