// The kernels of the CUDA device: cuDNN and cuBLAS where they have the op, our own elsewhere.
// Plain layouts only. NativeStream is a cuda::CudaStream with library handles.
//
// Our own: element-wise ops and updates, sums in a fixed order, and convolutions for shapes that
// cuDNN has no deterministic algorithm for, among others. Kernels read iteration, seed and learning
// rate from the control block on the device, so that captured graphs stay valid.
#pragma once

#include <cstddef>

#include "nn/kernel.h"

namespace tidepool::nn {

struct CudaKernelOptions {
  bool tf32 = false;              ///< convolutions, linear layers, attention may round to TF32
  bool nondeterministic = false;  ///< also list algorithms that do not repeat their bits
  bool own_convolutions = false;  ///< none of cuDNN's, for tests
};

/// A list for each choice; their names differ. Making a kernel needs a GPU: cuDNN is asked
/// for algorithms and workspaces. Throws DeviceError when there is none.
const KernelList& cuda_kernels(const CudaKernelOptions& options = {});

/// Loads this project's own device code, so that no later launch does.
void load_cuda_kernels();

}  // namespace tidepool::nn
