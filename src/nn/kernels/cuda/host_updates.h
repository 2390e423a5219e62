// Sums of gradients and updates of weights and statistics in host memory, with the bits that this
// folder's kernels give on a GPU: both round every sum and product by itself, in the same order.
//
// No compiler may join a sum and a product (`__fmul_rn` and the like there, -ffp-contract=off
// here), and powers are products.
#pragma once

#include "nn/kernel.h"

namespace tidepool::nn {

/// AddForward in place, BatchNormStatistics and the update ops, large ones on all cores: while they
/// run the GPUs do the rest.
const KernelList& cuda_host_kernels();

}  // namespace tidepool::nn
