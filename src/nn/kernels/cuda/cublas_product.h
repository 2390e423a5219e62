// CublasKernel: ops by cuBLAS, which is told its workspace and its math before each. cuBLAS stores
// matrices by columns, so each of ours is the transpose of its.
#pragma once

#include "nn/kernels/cuda/kernel_support.h"

namespace tidepool::nn::cuda_kernels_detail {

class CublasKernel : public CudaKernel {
 public:
  /// `scratch`: bytes of workspace for the kernel itself.
  CublasKernel(const OpDesc& desc, bool tf32, Bytes scratch = 0);

 protected:
  /// In `multiply`.
  [[nodiscard]] std::byte* scratch() const { return scratch_; }
  virtual void multiply(Pointers p, const CudaStream& s) = 0;

 private:
  void enqueue(int algorithm, Pointers p, std::byte* workspace, const CudaStream& s) final;

  bool tf32_;
  Bytes scratch_bytes_;
  std::byte* scratch_ = nullptr;
};

}  // namespace tidepool::nn::cuda_kernels_detail
