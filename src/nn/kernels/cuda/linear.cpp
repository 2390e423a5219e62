// Linear layers by cuBLAS. It stores matrices by columns, so each of ours is the transpose of its.
#include <array>

#include "nn/kernels/cuda/factories.h"
#include "nn/kernels/cuda/kernel_support.h"
#include "nn/kernels/cuda/launch.h"

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

class LinearKernel final : public CudaKernel {
 public:
  LinearKernel(const OpDesc& desc, bool tf32) : CudaKernel(desc), tf32_(tf32) {
    for (const Workspace& workspace : kWorkspaces) add_algorithm(workspace.name, workspace.bytes);
  }

 private:
  struct Matrix {
    cublasOperation_t operation;
    const float* data;
    int columns;  ///< of the row-major matrix
  };

  /// The row-major product `to` (rows x columns) = a * b, where cuBLAS sees b's transpose first.
  static void multiply(const CudaStream& s, int rows, int columns, int inner, const Matrix& a,
                       const Matrix& b, float beta, float* to) {
    TIDEPOOL_CUDA_CHECK(cublas().cublasSgemm_v2(s.cublas(), b.operation, a.operation, columns, rows,
                                                inner, &kOne, b.data, b.columns, a.data, a.columns,
                                                &beta, to, columns));
  }

  void enqueue(int algorithm, Pointers p, std::byte* workspace, const CudaStream& s) override {
    TIDEPOOL_CUDA_CHECK(cublas().cublasSetMathMode(
        s.cublas(), tf32_ ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH));
    TIDEPOOL_CUDA_CHECK(cublas().cublasSetWorkspace_v2(
        s.cublas(), workspace,
        static_cast<std::size_t>(kWorkspaces[static_cast<std::size_t>(algorithm)].bytes)));
    constexpr auto kAsIs = CUBLAS_OP_N, kTransposed = CUBLAS_OP_T;
    const OpDesc& d = desc();
    const int batch = dim(d.operands[0], 0);
    if (d.is<LinearForward>()) {  // y = x * weight' + bias
      const int in = dim(d.operands[0], 1), out = dim(d.operands[3], 1);
      device_code::broadcast_rows(operand(p, 2), operand(p, 3), batch, out, s.stream());
      multiply(s, batch, out, in, {kAsIs, operand(p, 0), in}, {kTransposed, operand(p, 1), in},
               kOne, operand(p, 3));
    } else if (d.is<LinearBackwardData>()) {  // dx = dy * weight
      const int out = dim(d.operands[0], 1), in = dim(d.operands[2], 1);
      multiply(s, batch, in, out, {kAsIs, operand(p, 0), out}, {kAsIs, operand(p, 1), in}, kZero,
               operand(p, 2));
    } else {  // dweight = dy' * x
      const int in = dim(d.operands[0], 1), out = dim(d.operands[1], 1);
      multiply(s, out, in, batch, {kTransposed, operand(p, 1), out}, {kAsIs, operand(p, 0), in},
               kZero, operand(p, 2));
      device_code::sum_rows(operand(p, 1), operand(p, 3), batch, out, s.stream());
    }
  }

  bool tf32_;
};

}  // namespace

std::unique_ptr<Kernel> make_linear(const OpDesc& desc, const KernelContext& context) {
  if (desc.is<LinearForward>() || desc.is<LinearBackwardData>() ||
      desc.is<LinearBackwardWeights>()) {
    return std::make_unique<LinearKernel>(desc, context.tf32);
  }
  return nullptr;
}

}  // namespace tidepool::nn::cuda_kernels_detail
