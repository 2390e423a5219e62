// Element-wise ops and weight updates: our own kernels.
#include "nn/kernels/cuda/kernel_support.h"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn::cuda_kernels_detail {
namespace {

device_code::Dropout dropout_of(const OpDesc& desc) {
  const TensorDesc& x = desc.operands[0];
  device_code::Dropout dropout;
  dropout.random_key = desc.random_key;
  dropout.threshold = dropout_threshold(desc.drop_rate);
  dropout.scale = 1 / (1 - desc.drop_rate);
  dropout.first_element = desc.first_sample * (x.elements() / x.dims[0]);
  return dropout;
}

/// Works in place when asked to: the last operand read is the one written.
class Elementwise final : public CudaKernel {
 public:
  explicit Elementwise(const OpDesc& desc) : CudaKernel(desc), count_(desc.operands[0].elements()) {
    add_algorithm("own", 0);
  }

 private:
  void enqueue(int, Pointers p, std::byte*, const CudaStream& stream) override {
    auto* const s = stream.stream();
    const OpDesc& d = desc();
    const bool in_place = d.in_place;
    switch (d.kind) {
      case OpKind::relu_forward:
        device_code::relu_forward(operand(p, 0), operand(p, in_place ? 0 : 1), count_, s);
        return;
      case OpKind::relu_backward:
        device_code::relu_backward(operand(p, 0), operand(p, 1), operand(p, in_place ? 1 : 2),
                                   count_, s);
        return;
      case OpKind::add_forward:
        device_code::add(operand(p, 0), operand(p, 1), operand(p, in_place ? 0 : 2), count_, s);
        return;
      case OpKind::dropout_forward:
        device_code::dropout(dropout_of(d), operand<ControlBlock>(p, 1), operand(p, 0),
                             operand(p, in_place ? 0 : 2),
                             in_place ? nullptr : operand<std::uint8_t>(p, 3), count_, s);
        return;
      case OpKind::dropout_backward:
        if (in_place) {  // zeroes and scales what the forward pass did
          device_code::dropout(dropout_of(d), operand<ControlBlock>(p, 1), operand(p, 0),
                               operand(p, 0), nullptr, count_, s);
        } else {
          device_code::dropout_backward(1 / (1 - d.drop_rate), operand<std::uint8_t>(p, 1),
                                        operand(p, 0), operand(p, 2), count_, s);
        }
        return;
      case OpKind::sgd_update:
        device_code::sgd(d.momentum, d.weight_decay, operand<ControlBlock>(p, 1), operand(p, 0),
                         operand(p, 2), operand(p, 3), count_, s);
        return;
      case OpKind::adamw_update:
        device_code::adamw({d.beta1, d.beta2, d.epsilon, d.weight_decay},
                           operand<ControlBlock>(p, 1), operand(p, 0), operand(p, 2), operand(p, 3),
                           operand(p, 4), count_, s);
        return;
      default:  // reorder: all layouts here are plain
        TIDEPOOL_CUDA_CHECK(cudaMemcpyAsync(p[1], p[0],
                                            static_cast<std::size_t>(d.operands[0].bytes()),
                                            cudaMemcpyDeviceToDevice, s));
        return;
    }
  }

  std::int64_t count_;
};

}  // namespace

std::unique_ptr<Kernel> make_elementwise(const OpDesc& desc, const CudaKernelOptions&) {
  switch (desc.kind) {
    case OpKind::relu_forward:
    case OpKind::relu_backward:
    case OpKind::add_forward:
    case OpKind::dropout_forward:
    case OpKind::dropout_backward:
    case OpKind::sgd_update:
    case OpKind::adamw_update:
    case OpKind::reorder:
      return std::make_unique<Elementwise>(desc);
    default:
      return nullptr;
  }
}

}  // namespace tidepool::nn::cuda_kernels_detail
