#include <algorithm>
#include <array>

#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/parallel.h"
#include "nn/kernels/function_kernel.h"

namespace tidepool::nn::cpu {
namespace {

/// Of sums, so that the order of summation allows vectors.
constexpr std::int64_t kLanes = 16;

/// A tensor as images of equal stretches: of one channel where it is plain, of a block of 8 or 16
/// that alternate where it is blocked.
struct Stretches {
  std::int64_t images, count, channels, lanes, area;

  explicit Stretches(const TensorDesc& y)
      : images(y.dims[0]),
        channels(y.dims[1]),
        lanes(block_of(y.layout)),
        area(y.dims[2] * y.dims[3]) {
    count = (channels + lanes - 1) / lanes;
  }
  [[nodiscard]] std::int64_t lanes_of(std::int64_t stretch) const {
    return std::min(lanes, channels - stretch * lanes);
  }
};

/// `bias` repeats every so many numbers as a block has channels; so do the sums of `sum_block`.
TIDEPOOL_VECTOR_CLONES void add_to_block(const float* bias, float* y, std::int64_t count) {
  const std::int64_t rows = count / kLanes;
  for (std::int64_t i = 0; i < rows; ++i) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) y[i * kLanes + lane] += bias[lane];
  }
  for (std::int64_t i = rows * kLanes; i < count; ++i) y[i] += bias[i % kLanes];
}

TIDEPOOL_VECTOR_CLONES void add_to_plane(float bias, float* y, std::int64_t area) {
#pragma omp simd
  for (std::int64_t i = 0; i < area; ++i) y[i] += bias;
}

TIDEPOOL_VECTOR_CLONES void sum_block(const float* dy, std::int64_t count, double* sums) {
  const std::int64_t rows = count / kLanes;
  for (std::int64_t i = 0; i < rows; ++i) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += static_cast<double>(dy[i * kLanes + lane]);
    }
  }
  for (std::int64_t i = rows * kLanes; i < count; ++i) {
    sums[i % kLanes] += static_cast<double>(dy[i]);
  }
}

/// The padding of a block stays zeros.
void add_bias(const OpDesc& desc, Pointers pointers, std::byte*, const KernelContext& context) {
  const Stretches s(desc.operands[0]);
  auto* y = reinterpret_cast<float*>(pointers[0]);
  const auto* bias = reinterpret_cast<const float*>(pointers[1]);
  parallel_ranges(context.threads, s.images * s.count, 1, [&](auto begin, auto end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % s.count * s.lanes;
      float* to = y + i * s.lanes * s.area;
      if (s.lanes == 1) {
        add_to_plane(bias[first], to, s.area);
      } else {
        std::array<float, kLanes> of_block{};
        for (std::int64_t at = 0; at < kLanes; at += s.lanes) {
          std::copy_n(bias + first, s.lanes_of(i % s.count), of_block.begin() + at);
        }
        add_to_block(of_block.data(), to, s.lanes * s.area);
      }
    }
  });
}

void sum_bias(const OpDesc& desc, Pointers pointers, std::byte*, const KernelContext& context) {
  const Stretches s(desc.operands[0]);
  const auto* dy = reinterpret_cast<const float*>(pointers[0]);
  auto* dbias = reinterpret_cast<float*>(pointers[1]);
  parallel_ranges(context.threads, s.count, 1, [&](auto begin, auto end) {
    for (std::int64_t stretch = begin; stretch < end; ++stretch) {
      std::array<double, kLanes> sums{};
      for (std::int64_t image = 0; image < s.images; ++image) {
        const std::int64_t stored = s.lanes * s.area;
        sum_block(dy + (image * s.count + stretch) * stored, stored, sums.data());
      }
      const auto lanes = static_cast<std::size_t>(s.lanes);
      for (std::size_t i = lanes; i < sums.size(); ++i) sums[i % lanes] += sums[i];
      for (std::int64_t lane = 0; lane < s.lanes_of(stretch); ++lane) {
        dbias[stretch * s.lanes + lane] = static_cast<float>(sums[static_cast<std::size_t>(lane)]);
      }
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> make_channel_bias(const OpDesc& desc, const KernelContext& context) {
  const bool is_forward = desc.is<ChannelBiasForward>();
  if (!is_forward && !desc.is<ChannelBiasBackward>()) return nullptr;
  return std::make_unique<FunctionKernel>(desc, context, "loop", is_forward ? add_bias : sum_bias);
}

}  // namespace tidepool::nn::cpu
