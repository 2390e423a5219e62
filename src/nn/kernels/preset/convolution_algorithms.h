// What a GPU's library offers for a convolution, as the machine presets have it: by name, with the
// workspace that follows from the shape. How fast each is, is the machine's (`ComputeModel`).
#pragma once

#include <vector>

#include "nn/kernel.h"
#include "nn/ops/op_desc.h"

namespace tidepool::nn {

// Note [Algorithms of the presets]. All of cuDNN's deterministic kinds, with its rules on shapes:
//   implicit-gemm           any shape; no workspace
//   implicit-precomp-gemm   any shape; a table of offsets: one for each element of a filter and for
//                           each position of a filter in an image (int32)
//   gemm                    one group, unless the windows are the input as it is (1x1, stride 1);
//   the
//                           input unfolded (im2col), of the whole sub-batch
//   winograd                one group, 3x3 or 5x5, stride 1; tiles of 8x8 (F(6x6, 3x3) and F(4x4,
//                           5x5)): the transformed filters, 64 * Cin * Cout * 4 B, and the
//                           transformed tiles of input and output, of the whole sub-batch
//   fft                     one group, stride 1, a window of more than one position and larger than
//                           the padding, padded images of up to 256x256: filters, input and output
//                           in the frequency domain, on squares of a power of two, half of which
//                           follows from the other half (Mathieu et al., arXiv:1312.5851)
// Backward passes are convolutions of the same cost: their workspaces come from the same formulas,
// where the tiles of Winograd cover what is written, of backward-weights the output's gradient.

/// Of a convolution, least workspace first; empty for other ops.
std::vector<KernelAlgorithm> convolution_algorithms(const OpDesc& desc);

}  // namespace tidepool::nn
