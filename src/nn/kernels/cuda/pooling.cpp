// Average pooling by cuDNN; max pooling, which keeps an index, by our own kernels.
#include "nn/kernels/cuda/factories.h"
#include "nn/kernels/cuda/kernel_support.h"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn::cuda_kernels_detail {
namespace {

class PoolingDescriptor
    : public CudnnDescriptor<cudnnPoolingDescriptor_t, &cuda::Cudnn::cudnnCreatePoolingDescriptor,
                             &cuda::Cudnn::cudnnDestroyPoolingDescriptor> {
 public:
  explicit PoolingDescriptor(const OpDesc& desc) {
    const auto& [window, side, padding] = desc.get<Window>();
    const auto stride = static_cast<int>(side);
    TIDEPOOL_CUDA_CHECK(cudnn().cudnnSetPooling2dDescriptor(
        get(), CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, CUDNN_PROPAGATE_NAN,
        static_cast<int>(window.height), static_cast<int>(window.width),
        static_cast<int>(padding.height), static_cast<int>(padding.width), stride, stride));
  }
};

class AveragePooling final : public CudaKernel {
 public:
  explicit AveragePooling(const OpDesc& desc)
      : CudaKernel(desc),
        forward_(desc.is<AvgPoolForward>()),
        x_(desc.operands[forward_ ? 0 : 1]),
        y_(desc.operands[forward_ ? 1 : 0]),
        pooling_(desc) {
    add_algorithm("cudnn", 0);
  }

 private:
  void enqueue(int, Pointers p, std::byte*, const CudaStream& s) override {
    if (forward_) {
      TIDEPOOL_CUDA_CHECK(cudnn().cudnnPoolingForward(s.cudnn(), pooling_.get(), &kOne, x_.get(),
                                                      p[0], &kZero, y_.get(), p[1]));
      return;
    }
    // The gradient of an average needs neither x nor y, but cuDNN wants addresses of that size for
    // both: dx (which it writes) and dy are.
    TIDEPOOL_CUDA_CHECK(cudnn().cudnnPoolingBackward(s.cudnn(), pooling_.get(), &kOne, y_.get(),
                                                     p[0], y_.get(), p[0], x_.get(), p[1], &kZero,
                                                     x_.get(), p[1]));
  }

  bool forward_;
  Tensor4d x_, y_;
  PoolingDescriptor pooling_;
};

class MaxPooling final : public CudaKernel {
 public:
  explicit MaxPooling(const OpDesc& desc) : CudaKernel(desc), forward_(desc.is<MaxPoolForward>()) {
    const TensorDesc& x = desc.operands[forward_ ? 0 : 2];
    const TensorDesc& y = desc.operands[forward_ ? 1 : 0];
    pooling_.planes = dim(x, 0) * dim(x, 1);
    pooling_.height = dim(x, 2);
    pooling_.width = dim(x, 3);
    pooling_.out_height = dim(y, 2);
    pooling_.out_width = dim(y, 3);
    const auto& window = desc.get<Window>();
    pooling_.window_height = static_cast<int>(window.window.height);
    pooling_.window_width = static_cast<int>(window.window.width);
    pooling_.stride = static_cast<int>(window.stride);
    pooling_.padding_height = static_cast<int>(window.padding.height);
    pooling_.padding_width = static_cast<int>(window.padding.width);
    add_algorithm("own", 0);
  }

 private:
  void enqueue(int, Pointers p, std::byte*, const CudaStream& s) override {
    if (forward_) {
      device_code::max_pool_forward(pooling_, operand(p, 0), operand(p, 1),
                                    operand<std::uint8_t>(p, 2), s.stream());
    } else {
      device_code::max_pool_backward(pooling_, operand(p, 0), operand<std::uint8_t>(p, 1),
                                     operand(p, 2), s.stream());
    }
  }

  bool forward_;
  device_code::Pooling pooling_;
};

}  // namespace

std::unique_ptr<Kernel> make_pooling(const OpDesc& desc, const KernelContext& /*context*/) {
  if (desc.is<MaxPoolForward>() || desc.is<MaxPoolBackward>()) {
    return std::make_unique<MaxPooling>(desc);
  }
  if (desc.is<AvgPoolForward>() || desc.is<AvgPoolBackward>()) {
    return std::make_unique<AveragePooling>(desc);
  }
  return nullptr;
}

}  // namespace tidepool::nn::cuda_kernels_detail
