// Every return code of CUDA, cuDNN and cuBLAS goes through one of these: an error names the call,
// its place and the library's own words.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

namespace tidepool::cuda {

/// Where a call stands and what it says.
struct CallSite {
  const char* call;
  const char* file;
  int line;
};

[[noreturn]] void fail(cudaError_t error, const CallSite& site);
[[noreturn]] void fail(cudnnStatus_t status, const CallSite& site);
[[noreturn]] void fail(cublasStatus_t status, const CallSite& site);

inline void check(cudaError_t error, const CallSite& site) {
  if (error != cudaSuccess) fail(error, site);
}
inline void check(cudnnStatus_t status, const CallSite& site) {
  if (status != CUDNN_STATUS_SUCCESS) fail(status, site);
}
inline void check(cublasStatus_t status, const CallSite& site) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(status, site);
}

}  // namespace tidepool::cuda

/// Throws DeviceError unless the call succeeds.
#define TIDEPOOL_CUDA_CHECK(...) \
  ::tidepool::cuda::check((__VA_ARGS__), {#__VA_ARGS__, __FILE__, __LINE__})
