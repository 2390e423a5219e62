#include "nn/kernels/cuda/cublas_product.h"

#include <array>

namespace tidepool::nn::cuda_kernels_detail {
namespace {

/// cuBLAS' documentation: 16 KiB are enough for every routine to work, 32 MiB are recommended on
/// Hopper. The bits depend on the size, so that each is an algorithm.
struct Workspace {
  const char* name;
  Bytes bytes;
};
constexpr std::array<Workspace, 2> kWorkspaces = {
    {{"cublas", 16 * kKiB}, {"cublas-32MiB", 32 * kMiB}}};

}  // namespace

CublasKernel::CublasKernel(const OpDesc& desc, bool tf32, Bytes own)
    : CudaKernel(desc), tf32_(tf32) {
  for (const Workspace& each : kWorkspaces) add_algorithm(each.name, each.bytes + own);
}

void CublasKernel::enqueue(int algorithm, Pointers p, std::byte* workspace, const CudaStream& s) {
  TIDEPOOL_CUDA_CHECK(cublas().cublasSetMathMode(
      s.cublas(), tf32_ ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH));
  const Bytes bytes = kWorkspaces[static_cast<std::size_t>(algorithm)].bytes;
  TIDEPOOL_CUDA_CHECK(
      cublas().cublasSetWorkspace_v2(s.cublas(), workspace, static_cast<std::size_t>(bytes)));
  multiply(p, workspace + bytes, s);
}

void CublasKernel::product(const CudaStream& s, int rows, int columns, int inner, const Matrix& a,
                           const Matrix& b, float beta, float* c, int pitch) {
  TIDEPOOL_CUDA_CHECK(cublas().cublasSgemm_v2(s.cublas(), b.operation, a.operation, columns, rows,
                                              inner, &kOne, b.data, b.pitch, a.data, a.pitch, &beta,
                                              c, pitch));
}

}  // namespace tidepool::nn::cuda_kernels_detail
