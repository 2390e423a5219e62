#include "nn/kernels/cuda/cublas_product.h"

#include <array>

namespace tidepool::nn::cuda_kernels_detail {
namespace {

constexpr Bytes kAlignment = 256;  // of workspaces

/// cuBLAS' documentation: 16 KiB are enough for every routine to work, 32 MiB are recommended on
/// Hopper. The bits depend on the size, so that each is an algorithm.
struct Workspace {
  const char* name;
  Bytes bytes;
};
constexpr std::array<Workspace, 2> kWorkspaces = {
    {{"cublas", 16 * kKiB}, {"cublas-32MiB", 32 * kMiB}}};

}  // namespace

CublasKernel::CublasKernel(const OpDesc& desc, bool tf32, Bytes scratch)
    : CudaKernel(desc), tf32_(tf32), scratch_bytes_(align_up(scratch, kAlignment)) {
  for (const Workspace& workspace : kWorkspaces) {
    add_algorithm(workspace.name, scratch_bytes_ + workspace.bytes);
  }
}

void CublasKernel::enqueue(int algorithm, Pointers p, std::byte* workspace, const CudaStream& s) {
  TIDEPOOL_CUDA_CHECK(cublas().cublasSetMathMode(
      s.cublas(), tf32_ ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH));
  TIDEPOOL_CUDA_CHECK(cublas().cublasSetWorkspace_v2(
      s.cublas(), workspace + scratch_bytes_,
      static_cast<std::size_t>(kWorkspaces[static_cast<std::size_t>(algorithm)].bytes)));
  scratch_ = workspace;
  multiply(p, s);
}

}  // namespace tidepool::nn::cuda_kernels_detail
