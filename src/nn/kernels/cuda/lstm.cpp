// LSTM by cuBLAS' products, one over the whole sequence and one for each step, with our own kernel
// for the cells between them. Not by cuDNN's RNN: it may not repeat its bits (release notes of
// cuDNN 7.6.5 and 8, "Limitations": products in streams of its own pick by what workspace is free,
// unless the environment says CUBLAS_WORKSPACE_CONFIG), has workspaces outside of any budget for
// them, and only a GPU can say how large its reserve is.
#include "nn/kernels/cuda/cublas_product.h"
#include "nn/kernels/cuda/factories.h"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn::cuda_kernels_detail {
namespace {

constexpr auto kAsIs = CUBLAS_OP_N, kTransposed = CUBLAS_OP_T;

/// Sizes as cuBLAS takes them.
struct LstmSizes {
  int samples, steps, inputs, hidden, rows, gates, reserve;

  explicit LstmSizes(const LstmShape& s)
      : samples(static_cast<int>(s.samples)),
        steps(static_cast<int>(s.steps)),
        inputs(static_cast<int>(s.inputs)),
        hidden(static_cast<int>(s.hidden)),
        rows(static_cast<int>(s.rows())),
        gates(static_cast<int>(s.gates())),
        reserve(static_cast<int>(s.reserve())) {}
  [[nodiscard]] device_code::Lstm device(int pitch) const {
    return {samples, steps, hidden, pitch};
  }
};

constexpr Bytes floats(std::int64_t count) { return count * static_cast<Bytes>(sizeof(float)); }

class LstmForwardKernel final : public CublasKernel {
 public:
  LstmForwardKernel(const OpDesc& desc, bool tf32)
      : CublasKernel(desc, tf32), size_(LstmForward::shape(desc.operands)) {}

 private:
  void multiply(Pointers p, std::byte* /*own*/, const CudaStream& s) override {
    const auto& [samples, steps, inputs, hidden, rows, gates, reserve_pitch] = size_;
    const float* weight_hidden = operand(p, 2);
    float *y = operand(p, 4), *reserve = operand(p, 5);
    product(s, rows, gates, inputs, {kAsIs, operand(p, 0), inputs},
            {kTransposed, operand(p, 1), inputs}, kZero, reserve, reserve_pitch);
    for (std::int64_t t = 0; t < steps; ++t) {
      if (t > 0) {
        product(s, samples, gates, hidden, {kAsIs, y + (t - 1) * hidden, steps * hidden},
                {kTransposed, weight_hidden, hidden}, kOne, reserve + t * reserve_pitch,
                steps * reserve_pitch);
      }
      device_code::lstm_cells(size_.device(reserve_pitch), t, operand(p, 3), reserve, y,
                              s.stream());
    }
  }

  LstmSizes size_;
};

class LstmBackwardDataKernel final : public CublasKernel {
 public:
  /// Has the gradients of y and c that come from the next step.
  LstmBackwardDataKernel(const OpDesc& desc, const LstmShape& shape, bool tf32)
      : CublasKernel(desc, tf32, floats(2 * shape.samples * shape.hidden)), size_(shape) {}

 private:
  void multiply(Pointers p, std::byte* own, const CudaStream& s) override {
    const auto& [samples, steps, inputs, hidden, rows, gates, reserve_pitch] = size_;
    const bool in_place = desc().in_place;
    const float *weight_hidden = operand(p, 2), *reserve = operand(p, 3);
    float* dgates = operand(p, in_place ? 3 : 4);
    const int pitch = in_place ? reserve_pitch : gates;
    auto* dh = reinterpret_cast<float*>(own);
    float* dc = dh + static_cast<std::int64_t>(samples) * hidden;
    for (std::int64_t t = steps - 1; t >= 0; --t) {
      device_code::lstm_cells_backward(size_.device(pitch), t, operand(p, 0), dh, reserve, dgates,
                                       dc, s.stream());
      if (t == 0) break;
      product(s, samples, hidden, gates, {kAsIs, dgates + t * pitch, steps * pitch},
              {kAsIs, weight_hidden, hidden}, kZero, dh, hidden);
    }
    product(s, rows, inputs, gates, {kAsIs, dgates, pitch}, {kAsIs, operand(p, 1), inputs}, kZero,
            operand(p, in_place ? 4 : 5), inputs);
  }

  LstmSizes size_;
};

class LstmBackwardWeightsKernel final : public CublasKernel {
 public:
  /// Has y of the step before each place.
  LstmBackwardWeightsKernel(const OpDesc& desc, const LstmShape& shape, bool tf32)
      : CublasKernel(desc, tf32, floats(shape.rows() * shape.hidden)), size_(shape) {}

 private:
  void multiply(Pointers p, std::byte* own, const CudaStream& s) override {
    const auto& [samples, steps, inputs, hidden, rows, gates, reserve_pitch] = size_;
    const float* dgates = operand(p, 2);
    const int pitch = dim(desc().operands[2], 2);
    auto* previous = reinterpret_cast<float*>(own);
    product(s, gates, inputs, rows, {kTransposed, dgates, pitch}, {kAsIs, operand(p, 0), inputs},
            kZero, operand(p, 3), inputs);
    device_code::lstm_previous(size_.device(pitch), operand(p, 1), previous, s.stream());
    product(s, gates, hidden, rows, {kTransposed, dgates, pitch}, {kAsIs, previous, hidden}, kZero,
            operand(p, 4), hidden);
    device_code::lstm_sum_gates(size_.device(pitch), dgates, operand(p, 5), s.stream());
  }

  LstmSizes size_;
};

}  // namespace

std::unique_ptr<Kernel> make_lstm(const OpDesc& desc, const KernelContext& context) {
  if (desc.is<LstmForward>()) return std::make_unique<LstmForwardKernel>(desc, context.tf32);
  if (desc.is<LstmBackwardData>()) {
    return std::make_unique<LstmBackwardDataKernel>(desc, LstmBackwardData::shape(desc.operands),
                                                    context.tf32);
  }
  if (desc.is<LstmBackwardWeights>()) {
    return std::make_unique<LstmBackwardWeightsKernel>(
        desc, LstmBackwardWeights::shape(desc.operands), context.tf32);
  }
  return nullptr;
}

}  // namespace tidepool::nn::cuda_kernels_detail
