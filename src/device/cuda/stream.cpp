#include "device/cuda/stream.h"

#include "device/cuda/check.h"
#include "device/cuda/libraries.h"

namespace tidepool::cuda {

CudaStream::CudaStream(Handles handles) {
  try {
    TIDEPOOL_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    if (handles == Handles::none) return;
    TIDEPOOL_CUDA_CHECK(cuda::cublas().cublasCreate_v2(&cublas_));
    // Once only: setting the stream takes the handle's workspace away.
    TIDEPOOL_CUDA_CHECK(cuda::cublas().cublasSetStream_v2(cublas_, stream_));
    TIDEPOOL_CUDA_CHECK(cuda::cudnn().cudnnCreate(&cudnn_));
    TIDEPOOL_CUDA_CHECK(cuda::cudnn().cudnnSetStream(cudnn_, stream_));
  } catch (...) {
    release();
    throw;
  }
}

CudaStream::~CudaStream() { release(); }

/// Codes are dropped here: whoever synchronised has been told of a failed device.
void CudaStream::release() {
  if (cudnn_ != nullptr) (void)cuda::cudnn().cudnnDestroy(cudnn_);
  if (cublas_ != nullptr) (void)cuda::cublas().cublasDestroy_v2(cublas_);
  if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
}

}  // namespace tidepool::cuda
