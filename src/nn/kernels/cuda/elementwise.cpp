// Element-wise ops and weight updates: our own kernels. An op works in place when asked to: the
// last operand read is the one written.
#include "nn/kernels/cuda/factories.h"
#include "nn/kernels/cuda/kernel_support.h"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn::cuda_kernels_detail {
namespace {

/// One run of an op.
struct Call {
  const OpDesc& desc;
  Pointers p;
  std::int64_t count;  ///< elements of operand 0
  cudaStream_t stream;

  /// Where the result is: `apart`, or `in_place` where the op works so.
  [[nodiscard]] float* output(std::size_t in_place, std::size_t apart) const {
    return operand(p, desc.in_place ? in_place : apart);
  }
};

void enqueue(const ReluForward& /*op*/, const Call& c) {
  device_code::relu_forward(operand(c.p, 0), c.output(0, 1), c.count, c.stream);
}

void enqueue(const ReluBackward& /*op*/, const Call& c) {
  device_code::relu_backward(operand(c.p, 0), operand(c.p, 1), c.output(1, 2), c.count, c.stream);
}

void enqueue(const GeluForward& /*op*/, const Call& c) {
  device_code::gelu_forward(operand(c.p, 0), operand(c.p, 1), c.count, c.stream);
}

void enqueue(const GeluBackward& /*op*/, const Call& c) {
  device_code::gelu_backward(operand(c.p, 0), operand(c.p, 1), c.output(1, 2), c.count, c.stream);
}

void enqueue(const AddForward& op, const Call& c) {
  device_code::add(operand(c.p, 0), operand(c.p, 1), op.factor, c.output(0, 2), c.count, c.stream);
}

device_code::Dropout rule_of(const DropoutAttributes& op, const OpDesc& desc) {
  const TensorDesc& x = desc.operands[0];
  return {op.random_key, dropout_threshold(op.rate), op.scale(),
          desc.first_sample * (x.elements() / x.dims[0])};
}

void enqueue(const DropoutForward& op, const Call& c) {
  device_code::dropout(rule_of(op, c.desc), operand<ControlBlock>(c.p, 1), operand(c.p, 0),
                       c.output(0, 2), c.desc.in_place ? nullptr : operand<std::uint8_t>(c.p, 3),
                       c.count, c.stream);
}

void enqueue(const DropoutBackward& op, const Call& c) {
  if (c.desc.in_place) {  // zeroes and scales what the forward pass did
    device_code::dropout(rule_of(op, c.desc), operand<ControlBlock>(c.p, 1), operand(c.p, 0),
                         operand(c.p, 0), nullptr, c.count, c.stream);
  } else {
    device_code::dropout_backward(op.scale(), operand<std::uint8_t>(c.p, 1), operand(c.p, 0),
                                  operand(c.p, 2), c.count, c.stream);
  }
}

void enqueue(const SgdUpdate& op, const Call& c) {
  device_code::sgd(op.momentum, op.weight_decay, operand<ControlBlock>(c.p, 1), operand(c.p, 0),
                   operand(c.p, 2), operand(c.p, 3), c.count, c.stream);
}

void enqueue(const AdamwUpdate& op, const Call& c) {
  device_code::adamw({op.beta1, op.beta2, op.epsilon, op.weight_decay},
                     operand<ControlBlock>(c.p, 1), operand(c.p, 0), operand(c.p, 2),
                     operand(c.p, 3), operand(c.p, 4), c.count, c.stream);
}

void enqueue(const ChannelBiasForward& /*op*/, const Call& c) {
  device_code::add_to_channels(planes_of(c.desc.operands[0]), operand(c.p, 1), operand(c.p, 0),
                               c.stream);
}

void enqueue(const ChannelBiasBackward& /*op*/, const Call& c) {
  device_code::sum_channels(planes_of(c.desc.operands[0]), operand(c.p, 0), operand(c.p, 1),
                            c.stream);
}

/// An image is a row; one with fewer channels is a shorter one.
std::int64_t row_of(const TensorDesc& x) { return x.elements() / x.dims[0]; }

void enqueue(const ConcatForward& op, const Call& c) {
  const auto inputs = static_cast<std::size_t>(op.inputs);
  float* to = operand(c.p, inputs);
  for (std::size_t i = 0; i < inputs; ++i) {
    const TensorDesc& x = c.desc.operands[i];
    device_code::copy_rows({x.dims[0], row_of(x), row_of(x), row_of(c.desc.operands[inputs])},
                           operand(c.p, i), to, c.stream);
    to += row_of(x);
  }
}

void enqueue(const ConcatBackward& op, const Call& c) {
  const TensorDesc &dy = c.desc.operands[0], &dx = c.desc.operands[1];
  const std::int64_t plane = row_of(dy) / dy.dims[1];
  device_code::copy_rows({dx.dims[0], row_of(dx), row_of(dy), row_of(dx)},
                         operand(c.p, 0) + op.first_channel * plane, operand(c.p, 1), c.stream);
}

void enqueue(const Hold& /*op*/, const Call& /*c*/) {}

/// All layouts here are plain.
void enqueue(const Reorder& /*op*/, const Call& c) {
  TIDEPOOL_CUDA_CHECK(cudaMemcpyAsync(c.p[1], c.p[0],
                                      static_cast<std::size_t>(c.desc.operands[0].bytes()),
                                      cudaMemcpyDeviceToDevice, c.stream));
}

template <class Op>
class Elementwise final : public CudaKernel {
 public:
  explicit Elementwise(const OpDesc& desc) : CudaKernel(desc) { add_algorithm("own", 0); }

 private:
  void enqueue(int, Pointers p, std::byte*, const CudaStream& stream) override {
    cuda_kernels_detail::enqueue(desc().template get<Op>(),
                                 {desc(), p, desc().operands[0].elements(), stream.stream()});
  }
};

}  // namespace

std::unique_ptr<Kernel> make_elementwise(const OpDesc& desc, const KernelContext& /*context*/) {
  return std::visit(
      [&]<class Op>(const Op& op) -> std::unique_ptr<Kernel> {
        if constexpr (requires(const Call& call) { enqueue(op, call); }) {
          return std::make_unique<Elementwise<Op>>(desc);
        }
        return nullptr;
      },
      desc.op);
}

}  // namespace tidepool::nn::cuda_kernels_detail
