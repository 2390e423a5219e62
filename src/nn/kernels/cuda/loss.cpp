// Softmax by cuDNN; cross-entropy, its gradient and the count of right answers by our own kernels.
#include "nn/kernels/cuda/factories.h"
#include "nn/kernels/cuda/kernel_support.h"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn::cuda_kernels_detail {
namespace {

/// Logits are images with a channel for each class.
bool has_pixels(const OpDesc& desc) { return desc.operands[0].dims.size() == 4; }

class SoftmaxLoss final : public CudaKernel {
 public:
  explicit SoftmaxLoss(const OpDesc& desc) : CudaKernel(desc), logits_(desc.operands[0]) {
    const std::int64_t parts =
        has_pixels(desc) ? device_code::pixel_cross_entropy_parts(planes_of(desc.operands[0]))
                         : desc.operands[0].dims[0];
    add_algorithm("cudnn", parts * static_cast<Bytes>(sizeof(double)));
  }

 private:
  void enqueue(int, Pointers p, std::byte* workspace, const CudaStream& s) override {
    const TensorDesc& logits = desc().operands[0];
    TIDEPOOL_CUDA_CHECK(
        cudnn().cudnnSoftmaxForward(s.cudnn(), CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
                                    &kOne, logits_.get(), p[0], &kZero, logits_.get(), p[3]));
    // From the logits: the logarithm of a probability that is 0 in float would be infinite.
    const auto* labels = operand<std::int32_t>(p, 1);
    const auto full_batch = static_cast<double>(desc().get<LossAttributes>().full_batch);
    auto* parts = reinterpret_cast<double*>(workspace);
    if (has_pixels(desc())) {
      device_code::pixel_cross_entropy(planes_of(logits), operand(p, 0), labels, full_batch, parts,
                                       operand(p, 2), s.stream());
    } else {
      device_code::cross_entropy(operand(p, 0), labels, logits.dims[0], logits.dims[1], full_batch,
                                 parts, operand(p, 2), s.stream());
    }
  }

  Tensor4d logits_;
};

class SoftmaxLossBackwardKernel final : public CudaKernel {
 public:
  explicit SoftmaxLossBackwardKernel(const OpDesc& desc) : CudaKernel(desc) {
    add_algorithm("own", 0);
  }

 private:
  void enqueue(int, Pointers p, std::byte*, const CudaStream& s) override {
    device_code::softmax_loss_backward(
        planes_of(desc().operands[0]), operand(p, 0), operand<std::int32_t>(p, 1),
        static_cast<float>(desc().get<LossAttributes>().full_batch), operand(p, 2), s.stream());
  }
};

class CountCorrectKernel final : public CudaKernel {
 public:
  explicit CountCorrectKernel(const OpDesc& desc) : CudaKernel(desc) { add_algorithm("own", 0); }

 private:
  void enqueue(int, Pointers p, std::byte*, const CudaStream& s) override {
    const TensorDesc& logits = desc().operands[0];
    TIDEPOOL_CUDA_CHECK(cudaMemsetAsync(p[2], 0, sizeof(std::int32_t), s.stream()));
    const auto* labels = operand<std::int32_t>(p, 1);
    auto* count = operand<std::int32_t>(p, 2);
    if (has_pixels(desc())) {
      device_code::count_correct_pixels(planes_of(logits), operand(p, 0), labels, count,
                                        s.stream());
    } else {
      device_code::count_correct(operand(p, 0), labels, logits.dims[0], logits.dims[1], count,
                                 s.stream());
    }
  }
};

}  // namespace

std::unique_ptr<Kernel> make_loss(const OpDesc& desc, const KernelContext& /*context*/) {
  if (desc.is<SoftmaxLossForward>()) return std::make_unique<SoftmaxLoss>(desc);
  if (desc.is<SoftmaxLossBackward>()) return std::make_unique<SoftmaxLossBackwardKernel>(desc);
  if (desc.is<CountCorrect>()) return std::make_unique<CountCorrectKernel>(desc);
  return nullptr;
}

}  // namespace tidepool::nn::cuda_kernels_detail
