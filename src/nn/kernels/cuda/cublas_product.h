// CublasKernel: ops by cuBLAS, which is told its workspace and its math before each. cuBLAS stores
// matrices by columns, so each of ours is the transpose of its.
#pragma once

#include "nn/kernels/cuda/kernel_support.h"

namespace tidepool::nn::cuda_kernels_detail {

class CublasKernel : public CudaKernel {
 public:
  /// `own`: bytes of the workspace that are the kernel's, not cuBLAS'.
  CublasKernel(const OpDesc& desc, bool tf32, Bytes own = 0);

 protected:
  virtual void multiply(Pointers p, std::byte* own, const CudaStream& s) = 0;

  struct Matrix {
    cublasOperation_t operation;
    const float* data;
    int pitch;  ///< from one row to the next of the row-major matrix
  };
  /// The row-major product c (rows x columns) = a * b + beta * c, where cuBLAS sees b's transpose
  /// first.
  static void product(const CudaStream& s, int rows, int columns, int inner, const Matrix& a,
                      const Matrix& b, float beta, float* c, int pitch);

 private:
  void enqueue(int algorithm, Pointers p, std::byte* workspace, const CudaStream& s) final;

  bool tf32_;
};

}  // namespace tidepool::nn::cuda_kernels_detail
