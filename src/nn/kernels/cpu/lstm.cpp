// LSTM by oneDNN's products: one over the whole sequence, one for each step, and loops over the
// cells between them. oneDNN's own LSTM is not used: what its forward pass leaves for the backward
// one has a layout and a size that differ by machine, and it takes sequences step by step.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/parallel.h"
#include "nn/kernels/cpu/product.h"
#include "nn/kernels/cpu/team_size.h"
#include "nn/kernels/function_kernel.h"

namespace tidepool::nn::cpu {
namespace {

/// Two products, and what their kernel holds in its workspace besides their scratchpad.
class LstmKernel : public Kernel {
 public:
  [[nodiscard]] std::span<const KernelAlgorithm> algorithms() const final {
    return {&algorithm_, 1};
  }
  void run(int /*algorithm*/, Pointers pointers, std::byte* workspace,
           NativeStream /*stream*/) final {
    const TeamSize team(threads_);
    run(pointers, reinterpret_cast<float*>(workspace), workspace + held_);
  }

 protected:
  LstmKernel(const LstmShape& shape, int threads, std::pair<Product, Product> products,
             std::int64_t held_floats)
      : shape_(shape),
        threads_(threads),
        sequence_(std::move(products.first)),
        step_(std::move(products.second)),
        held_(align_up(held_floats * static_cast<Bytes>(sizeof(float)), kLine)),
        algorithm_{"onednn", held_ + std::max(sequence_.scratch(), step_.scratch())} {}

  virtual void run(Pointers pointers, float* held, std::byte* scratch) = 0;

  /// Calls `body(sample, first, last)` for ranges of the cells of all samples.
  template <class Body>
  void for_each_cell(const Body& body) const {
    const std::int64_t hidden = shape_.hidden;
    parallel_ranges(threads_, shape_.samples * hidden, kFloatGrain, [&](auto begin, auto end) {
      while (begin < end) {
        const std::int64_t sample = begin / hidden;
        const std::int64_t stop = std::min(end, (sample + 1) * hidden);
        body(sample, begin - sample * hidden, stop - sample * hidden);
        begin = stop;
      }
    });
  }

  /// c of the step before a place, or null at the first step.
  [[nodiscard]] const float* cell_before(const float* reserve, std::int64_t place,
                                         std::int64_t step) const {
    return step > 0 ? reserve + (place - 1) * shape_.reserve() + 4 * shape_.hidden : nullptr;
  }

  static constexpr Bytes kLine = 64;
  LstmShape shape_;
  int threads_;
  Product sequence_, step_;
  Bytes held_;

 private:
  KernelAlgorithm algorithm_;
};

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

class LstmForwardKernel final : public LstmKernel {
 public:
  LstmForwardKernel(const LstmShape& shape, int threads, std::pair<Product, Product> products)
      : LstmKernel(shape, threads, std::move(products), 0) {}

 private:
  void run(Pointers p, float* /*held*/, std::byte* scratch) override {
    const auto* weight_hidden = reinterpret_cast<const float*>(p[2]);
    const auto* bias = reinterpret_cast<const float*>(p[3]);
    auto* y = reinterpret_cast<float*>(p[4]);
    auto* reserve = reinterpret_cast<float*>(p[5]);
    sequence_.run(reinterpret_cast<const float*>(p[0]), reinterpret_cast<const float*>(p[1]),
                  reserve, scratch);
    for (std::int64_t t = 0; t < shape_.steps; ++t) {
      if (t > 0) {
        step_.run(y + (t - 1) * shape_.hidden, weight_hidden, reserve + t * shape_.reserve(),
                  scratch);
      }
      for_each_cell([&](auto sample, auto first, auto last) {
        const std::int64_t place = sample * shape_.steps + t;
        cells(cell_before(reserve, place, t), bias, reserve + place * shape_.reserve(),
              y + place * shape_.hidden, first, last);
      });
    }
  }

  /// `to` is the reserve of a place: what goes into the gates, but for the bias.
  void cells(const float* before, const float* bias, float* to, float* y, std::int64_t first,
             std::int64_t last) const {
    const std::int64_t hidden = shape_.hidden;
    for (std::int64_t j = first; j < last; ++j) {
      const float i = sigmoid(to[j] + bias[j]);
      const float f = sigmoid(to[hidden + j] + bias[hidden + j]);
      const float g = std::tanh(to[2 * hidden + j] + bias[2 * hidden + j]);
      const float o = sigmoid(to[3 * hidden + j] + bias[3 * hidden + j]);
      const float c = (before != nullptr ? f * before[j] : 0.0F) + i * g;
      to[j] = i;
      to[hidden + j] = f;
      to[2 * hidden + j] = g;
      to[3 * hidden + j] = o;
      to[4 * hidden + j] = c;
      y[j] = o * std::tanh(c);
    }
  }
};

class LstmBackwardDataKernel final : public LstmKernel {
 public:
  /// Holds the gradients of y and c that come from the next step.
  LstmBackwardDataKernel(const LstmShape& shape, int threads, std::pair<Product, Product> products,
                         bool in_place)
      : LstmKernel(shape, threads, std::move(products), 2 * shape.samples * shape.hidden),
        in_place_(in_place) {}

 private:
  void run(Pointers p, float* held, std::byte* scratch) override {
    const auto* dy = reinterpret_cast<const float*>(p[0]);
    const auto* weight_hidden = reinterpret_cast<const float*>(p[2]);
    const auto* reserve = reinterpret_cast<const float*>(p[3]);
    auto* dgates = reinterpret_cast<float*>(p[in_place_ ? 3 : 4]);
    const std::int64_t pitch = in_place_ ? shape_.reserve() : shape_.gates();
    float* dh = held;
    float* dc = held + shape_.samples * shape_.hidden;
    for (std::int64_t t = shape_.steps - 1; t >= 0; --t) {
      const bool last_step = t + 1 == shape_.steps;
      for_each_cell([&](auto sample, auto first, auto last) {
        const std::int64_t place = sample * shape_.steps + t, cell = sample * shape_.hidden;
        cells(cell_before(reserve, place, t), last_step, dy + place * shape_.hidden,
              reserve + place * shape_.reserve(), dgates + place * pitch, dh + cell, dc + cell,
              first, last);
      });
      if (t > 0) step_.run(dgates + t * pitch, weight_hidden, dh, scratch);
    }
    sequence_.run(dgates, reinterpret_cast<const float*>(p[1]),
                  reinterpret_cast<float*>(p[in_place_ ? 4 : 5]), scratch);
  }

  /// At the last step nothing comes from a later one. `to` may be `kept`.
  void cells(const float* before, bool last_step, const float* dy, const float* kept, float* to,
             const float* dh, float* dc, std::int64_t first, std::int64_t last) const {
    const std::int64_t hidden = shape_.hidden;
    for (std::int64_t j = first; j < last; ++j) {
      const float i = kept[j], f = kept[hidden + j], g = kept[2 * hidden + j];
      const float o = kept[3 * hidden + j], squashed = std::tanh(kept[4 * hidden + j]);
      const float d = dy[j] + (last_step ? 0.0F : dh[j]);
      const float all = (last_step ? 0.0F : dc[j]) + d * o * (1 - squashed * squashed);
      to[j] = all * g * i * (1 - i);
      to[hidden + j] = before == nullptr ? 0.0F : all * before[j] * f * (1 - f);
      to[2 * hidden + j] = all * i * (1 - g * g);
      to[3 * hidden + j] = d * squashed * o * (1 - o);
      dc[j] = all * f;
    }
  }

  bool in_place_;
};

class LstmBackwardWeightsKernel final : public LstmKernel {
 public:
  /// Holds y of the step before each place.
  LstmBackwardWeightsKernel(const LstmShape& shape, int threads,
                            std::pair<Product, Product> products, std::int64_t pitch)
      : LstmKernel(shape, threads, std::move(products), shape.rows() * shape.hidden),
        pitch_(pitch) {}

 private:
  void run(Pointers p, float* held, std::byte* scratch) override {
    const auto* y = reinterpret_cast<const float*>(p[1]);
    const auto* dgates = reinterpret_cast<const float*>(p[2]);
    sequence_.run(dgates, reinterpret_cast<const float*>(p[0]), reinterpret_cast<float*>(p[3]),
                  scratch);
    const std::int64_t hidden = shape_.hidden;
    parallel_ranges(threads_, shape_.rows(), 1, [&](auto begin, auto end) {
      for (std::int64_t place = begin; place < end; ++place) {
        float* to = held + place * hidden;
        if (place % shape_.steps == 0) {
          std::fill(to, to + hidden, 0.0F);
        } else {
          std::copy(y + (place - 1) * hidden, y + place * hidden, to);
        }
      }
    });
    step_.run(dgates, held, reinterpret_cast<float*>(p[4]), scratch);
    auto* dbias = reinterpret_cast<float*>(p[5]);
    parallel_ranges(threads_, shape_.gates(), kFloatGrain, [&](auto begin, auto end) {
      for (std::int64_t from = begin; from < end; from += kFloatGrain) {
        sum_columns(dgates, from, std::min(end, from + kFloatGrain), dbias);
      }
    });
  }

  void sum_columns(const float* dgates, std::int64_t begin, std::int64_t end, float* to) const {
    double sums[kFloatGrain] = {};
    for (std::int64_t place = 0; place < shape_.rows(); ++place) {
      const float* from = dgates + place * pitch_;
      for (std::int64_t c = begin; c < end; ++c) sums[c - begin] += static_cast<double>(from[c]);
    }
    for (std::int64_t c = begin; c < end; ++c) to[c] = static_cast<float>(sums[c - begin]);
  }

  std::int64_t pitch_;
};

std::optional<std::pair<Product, Product>> both(std::optional<Product> sequence,
                                                std::optional<Product> step) {
  if (!sequence || !step) return std::nullopt;
  return std::pair(std::move(*sequence), std::move(*step));
}

std::unique_ptr<Kernel> make_forward_lstm(const OpDesc& desc, int threads) {
  const LstmShape s = LstmForward::shape(desc.operands);
  const Matrix input{s.gates(), s.inputs, s.inputs}, hidden{s.gates(), s.hidden, s.hidden};
  auto products = both(Product::make({s.rows(), s.inputs, s.inputs}, transposed(input),
                                     {s.rows(), s.gates(), s.reserve()}, Sum::fresh),
                       Product::make({s.samples, s.hidden, s.steps * s.hidden}, transposed(hidden),
                                     {s.samples, s.gates(), s.steps * s.reserve()}, Sum::added));
  if (!products) return nullptr;
  return std::make_unique<LstmForwardKernel>(s, threads, std::move(*products));
}

std::unique_ptr<Kernel> make_backward_data_lstm(const OpDesc& desc, int threads) {
  const LstmShape s = LstmBackwardData::shape(desc.operands);
  const std::int64_t pitch = desc.in_place ? s.reserve() : s.gates();
  auto products =
      both(Product::make({s.rows(), s.gates(), pitch}, {s.gates(), s.inputs, s.inputs},
                         {s.rows(), s.inputs, s.inputs}, Sum::fresh),
           Product::make({s.samples, s.gates(), s.steps * pitch}, {s.gates(), s.hidden, s.hidden},
                         {s.samples, s.hidden, s.hidden}, Sum::fresh));
  if (!products) return nullptr;
  return std::make_unique<LstmBackwardDataKernel>(s, threads, std::move(*products), desc.in_place);
}

std::unique_ptr<Kernel> make_backward_weights_lstm(const OpDesc& desc, int threads) {
  const LstmShape s = LstmBackwardWeights::shape(desc.operands);
  const std::int64_t pitch = desc.operands[2].dims[2];
  const Matrix gates{s.rows(), s.gates(), pitch};
  auto products = both(Product::make(transposed(gates), {s.rows(), s.inputs, s.inputs},
                                     {s.gates(), s.inputs, s.inputs}, Sum::fresh),
                       Product::make(transposed(gates), {s.rows(), s.hidden, s.hidden},
                                     {s.gates(), s.hidden, s.hidden}, Sum::fresh));
  if (!products) return nullptr;
  return std::make_unique<LstmBackwardWeightsKernel>(s, threads, std::move(*products), pitch);
}

}  // namespace

std::unique_ptr<Kernel> make_lstm(const OpDesc& desc, const KernelContext& context) {
  const TeamSize team(context.threads);
  if (desc.is<LstmForward>()) return make_forward_lstm(desc, context.threads);
  if (desc.is<LstmBackwardData>()) return make_backward_data_lstm(desc, context.threads);
  if (desc.is<LstmBackwardWeights>()) return make_backward_weights_lstm(desc, context.threads);
  return nullptr;
}

}  // namespace tidepool::nn::cpu
