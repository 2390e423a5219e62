// What the kernels of this folder share: their base class, operands by type, cuDNN descriptors.
#pragma once

#include <cudnn.h>

#include <string>
#include <utility>
#include <vector>

#include "device/cuda/check.h"
#include "device/cuda/libraries.h"
#include "device/cuda/stream.h"
#include "nn/kernels/cuda/cuda.h"
#include "nn/kernels/cuda/launch.h"
#include "nn/ops/op_desc.h"

namespace tidepool::nn::cuda_kernels_detail {

using cuda::cublas;
using cuda::CudaStream;
using cuda::cudnn;

/// Operand addresses in the order of the op's operands.
using Pointers = std::span<std::byte* const>;

/// A kernel with its op and the algorithms found when it was made.
class CudaKernel : public Kernel {
 public:
  explicit CudaKernel(OpDesc desc) : desc_(std::move(desc)) {}

  [[nodiscard]] std::span<const KernelAlgorithm> algorithms() const final { return algorithms_; }
  void run(int algorithm, Pointers pointers, std::byte* workspace, NativeStream stream) final {
    enqueue(algorithm, pointers, workspace, CudaStream::from(stream));
  }

 protected:
  virtual void enqueue(int algorithm, Pointers pointers, std::byte* workspace,
                       const CudaStream& stream) = 0;
  [[nodiscard]] const OpDesc& desc() const { return desc_; }
  void add_algorithm(std::string name, Bytes workspace, bool deterministic = true) {
    algorithms_.push_back({std::move(name), workspace, deterministic});
  }

 private:
  OpDesc desc_;
  std::vector<KernelAlgorithm> algorithms_;
};

template <class T = float>
T* operand(Pointers pointers, std::size_t index) {
  return reinterpret_cast<T*>(pointers[index]);
}

/// Size of a dimension; those a tensor lacks are 1.
inline int dim(const TensorDesc& tensor, std::size_t index) {
  return index < tensor.dims.size() ? static_cast<int>(tensor.dims[index]) : 1;
}

inline device_code::Planes planes_of(const TensorDesc& x) {
  return {dim(x, 0), dim(x, 1), static_cast<std::int64_t>(dim(x, 2)) * dim(x, 3)};
}

/// Owns a cuDNN descriptor. `Create` and `Destroy` are members of cuda::Cudnn.
template <class Descriptor, auto Create, auto Destroy>
class CudnnDescriptor {
 public:
  CudnnDescriptor() { TIDEPOOL_CUDA_CHECK((cudnn().*Create)(&descriptor_)); }
  ~CudnnDescriptor() { (void)(cudnn().*Destroy)(descriptor_); }
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;
  [[nodiscard]] Descriptor get() const { return descriptor_; }

 private:
  Descriptor descriptor_ = nullptr;
};

/// float32, NCHW.
class Tensor4d
    : public CudnnDescriptor<cudnnTensorDescriptor_t, &cuda::Cudnn::cudnnCreateTensorDescriptor,
                             &cuda::Cudnn::cudnnDestroyTensorDescriptor> {
 public:
  explicit Tensor4d(const TensorDesc& t) : Tensor4d(dim(t, 0), dim(t, 1), dim(t, 2), dim(t, 3)) {}
  Tensor4d(int n, int c, int h, int w) {
    TIDEPOOL_CUDA_CHECK(
        cudnn().cudnnSetTensor4dDescriptor(get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w));
  }
};

// cuDNN blends: result = kOne * new + kZero * old, and does not read the old value.
inline constexpr float kOne = 1;
inline constexpr float kZero = 0;

/// For questions to cuDNN before there is any stream. Takes some device memory of its own.
cudnnHandle_t question_handle();

}  // namespace tidepool::nn::cuda_kernels_detail
