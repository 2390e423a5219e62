// Batch norm by cuDNN, and by our own kernels: for cases cuDNN makes no promise about (dx in the
// place of dy, one value a channel), and as one more algorithm elsewhere.
#include "nn/kernels/cuda/factories.h"
#include "nn/kernels/cuda/kernel_support.h"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn::cuda_kernels_detail {
namespace {

class BatchNormForwardKernel final : public CudaKernel {
 public:
  explicit BatchNormForwardKernel(const OpDesc& desc)
      : CudaKernel(desc),
        x_(desc.operands[0]),
        channels_(1, dim(desc.operands[0], 1), 1, 1),
        shape_(planes_of(desc.operands[0])),
        count_(shape_.images * shape_.plane) {
    if (count_ > 1) add_algorithm("cudnn", 0);
    add_algorithm("own", device_code::batch_norm_workspace(shape_));
  }

 private:
  void enqueue(int algorithm, Pointers p, std::byte* workspace, const CudaStream& s) override {
    auto *mean = operand(p, 4), *variance = operand(p, 5);
    if (count_ == 1 || algorithm == 1) {
      device_code::batch_norm_forward(shape_, desc().get<BatchNormAttributes>().epsilon,
                                      operand(p, 0), operand(p, 1), operand(p, 2), operand(p, 3),
                                      mean, variance, workspace, s.stream());
      return;
    }
    // cuDNN saves no variance, but its running statistics with a factor of 1 are those of this
    // batch: the mean, and the variance times count / (count - 1). Old values times 0 must not be
    // NaNs.
    const std::size_t bytes = static_cast<std::size_t>(shape_.channels) * sizeof(float);
    TIDEPOOL_CUDA_CHECK(cudaMemsetAsync(mean, 0, bytes, s.stream()));
    TIDEPOOL_CUDA_CHECK(cudaMemsetAsync(variance, 0, bytes, s.stream()));
    TIDEPOOL_CUDA_CHECK(cudnn().cudnnBatchNormalizationForwardTraining(
        s.cudnn(), CUDNN_BATCHNORM_SPATIAL, &kOne, &kZero, x_.get(), p[0], x_.get(), p[3],
        channels_.get(), p[1], p[2], 1.0, mean, variance,
        static_cast<double>(desc().get<BatchNormAttributes>().epsilon), nullptr, nullptr));
    const auto count = static_cast<double>(count_);
    device_code::scale(static_cast<float>((count - 1) / count), variance, shape_.channels,
                       s.stream());
  }

  Tensor4d x_, channels_;
  device_code::Planes shape_;
  std::int64_t count_;
};

class BatchNormBackwardKernel final : public CudaKernel {
 public:
  explicit BatchNormBackwardKernel(const OpDesc& desc)
      : CudaKernel(desc),
        x_(desc.operands[0]),
        channels_(1, dim(desc.operands[0], 1), 1, 1),
        shape_(planes_of(desc.operands[0])),
        has_cudnn_(!desc.in_place && shape_.images * shape_.plane > 1) {
    if (has_cudnn_) add_algorithm("cudnn", shape_.channels * static_cast<Bytes>(sizeof(float)));
    add_algorithm("own", device_code::batch_norm_workspace(shape_));
  }

 private:
  void enqueue(int algorithm, Pointers p, std::byte* workspace, const CudaStream& s) override {
    const bool in_place = desc().in_place;
    const std::size_t written = in_place ? 5 : 6;
    float* dx = operand(p, in_place ? 1 : 5);
    if (!has_cudnn_ || algorithm == 1) {
      device_code::batch_norm_backward(shape_, desc().get<BatchNormAttributes>().epsilon,
                                       operand(p, 0), operand(p, 1), operand(p, 2), operand(p, 3),
                                       operand(p, 4), dx, operand(p, written),
                                       operand(p, written + 1), workspace, s.stream());
      return;
    }
    auto* inverse = reinterpret_cast<float*>(workspace);
    device_code::inverse_deviation(desc().get<BatchNormAttributes>().epsilon, operand(p, 3),
                                   inverse, shape_.channels, s.stream());
    TIDEPOOL_CUDA_CHECK(cudnn().cudnnBatchNormalizationBackward(
        s.cudnn(), CUDNN_BATCHNORM_SPATIAL, &kOne, &kZero, &kOne, &kZero, x_.get(), p[0], x_.get(),
        p[1], x_.get(), dx, channels_.get(), p[4], p[written], p[written + 1],
        static_cast<double>(desc().get<BatchNormAttributes>().epsilon), p[2], inverse));
  }

  Tensor4d x_, channels_;
  device_code::Planes shape_;
  bool has_cudnn_;
};

class BatchNormInferenceKernel final : public CudaKernel {
 public:
  explicit BatchNormInferenceKernel(const OpDesc& desc)
      : CudaKernel(desc), x_(desc.operands[0]), channels_(1, dim(desc.operands[0], 1), 1, 1) {
    add_algorithm("cudnn", 0);
  }

 private:
  void enqueue(int, Pointers p, std::byte*, const CudaStream& s) override {
    TIDEPOOL_CUDA_CHECK(cudnn().cudnnBatchNormalizationForwardInference(
        s.cudnn(), CUDNN_BATCHNORM_SPATIAL, &kOne, &kZero, x_.get(), p[0], x_.get(), p[5],
        channels_.get(), p[1], p[2], p[3], p[4],
        static_cast<double>(desc().get<BatchNormAttributes>().epsilon)));
  }

  Tensor4d x_, channels_;
};

class BatchNormStatisticsKernel final : public CudaKernel {
 public:
  explicit BatchNormStatisticsKernel(const OpDesc& desc) : CudaKernel(desc) {
    add_algorithm("own", 0);
  }

 private:
  void enqueue(int, Pointers p, std::byte*, const CudaStream& s) override {
    const auto& op = desc().get<BatchNormStatistics>();
    const auto n = static_cast<float>(op.values);
    const float unbiased = op.values > 1 ? n / (n - 1) : 1.0F;
    device_code::batch_norm_statistics(op.momentum, unbiased, operand(p, 0), operand(p, 1),
                                       operand(p, 2), operand(p, 3), dim(desc().operands[0], 0),
                                       s.stream());
  }
};

}  // namespace

std::unique_ptr<Kernel> make_batch_norm(const OpDesc& desc, const KernelContext& /*context*/) {
  if (desc.is<BatchNormForward>()) return std::make_unique<BatchNormForwardKernel>(desc);
  if (desc.is<BatchNormBackward>()) return std::make_unique<BatchNormBackwardKernel>(desc);
  if (desc.is<BatchNormInference>()) return std::make_unique<BatchNormInferenceKernel>(desc);
  if (desc.is<BatchNormStatistics>()) return std::make_unique<BatchNormStatisticsKernel>(desc);
  return nullptr;
}

}  // namespace tidepool::nn::cuda_kernels_detail
