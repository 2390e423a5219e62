// CudaStream: a stream with the library handles bound to it. What a NativeStream points to on the
// CUDA device.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <memory>

#include "device/device.h"

namespace tidepool::cuda {

class CudaStream {
 public:
  enum class Handles { none, libraries };

  /// Makes the stream on the current device. Handles take device memory of their own, from the
  /// driver.
  explicit CudaStream(Handles handles);
  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  /// Null without handles.
  [[nodiscard]] cudnnHandle_t cudnn() const { return cudnn_; }
  [[nodiscard]] cublasHandle_t cublas() const { return cublas_; }

  static const CudaStream& from(NativeStream native) {
    return *static_cast<const CudaStream*>(native);
  }

 private:
  void release();

  cudaStream_t stream_ = nullptr;
  cudnnHandle_t cudnn_ = nullptr;
  cublasHandle_t cublas_ = nullptr;
};

/// Of each stream of a plan.
struct PlanStream {
  StreamKind kind = StreamKind::compute;
  SpaceId gpu = 0;  ///< among those of the device
  std::unique_ptr<CudaStream> own;
};

}  // namespace tidepool::cuda
