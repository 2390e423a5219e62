#include <bit>

#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/parallel.h"
#include "nn/kernels/function_kernel.h"

namespace tidepool::nn::cpu {
namespace {

struct Rule {
  std::uint64_t key = 0;
  std::uint32_t threshold = 0;
  float scale = 0;

  [[nodiscard]] bool keep(std::uint32_t element) const {
    return dropout_bits(key, element) >= threshold;
  }
};

// Elements are counted modulo 2^32, as dropout_bits does.

TIDEPOOL_VECTOR_CLONES void drop_plain(Rule rule, std::uint32_t first, std::uint32_t count,
                                       const float* x, float* y) {
#pragma omp simd
  for (std::uint32_t i = 0; i < count; ++i) {
    y[i] = (rule.keep(first + i) ? x[i] : 0.0F) * rule.scale;
  }
}

TIDEPOOL_VECTOR_CLONES void mask_plain(Rule rule, std::uint32_t first, std::uint32_t count,
                                       std::uint8_t* mask) {
#pragma omp simd
  for (std::uint32_t i = 0; i < count; ++i) mask[i] = rule.keep(first + i) ? 1 : 0;
}

/// One sample's block of 2^shift channels of `area` pixels; `first` is the element at its start.
struct Block {
  std::uint32_t first, area, shift;

  [[nodiscard]] std::uint32_t stored() const { return area << shift; }
  [[nodiscard]] std::uint32_t channel(std::uint32_t i) const { return i & ((1U << shift) - 1); }
  [[nodiscard]] std::uint32_t element(std::uint32_t i) const {
    return first + channel(i) * area + (i >> shift);
  }
};

TIDEPOOL_VECTOR_CLONES void drop_block(Rule rule, Block block, const float* x, float* y) {
#pragma omp simd
  for (std::uint32_t i = 0; i < block.stored(); ++i) {
    y[i] = (rule.keep(block.element(i)) ? x[i] : 0.0F) * rule.scale;
  }
}

/// The first `channels` channels of the block are real, the others padding.
TIDEPOOL_VECTOR_CLONES void mask_block(Rule rule, Block block, std::uint32_t channels,
                                       std::uint8_t* mask) {
#pragma omp simd
  for (std::uint32_t i = 0; i < block.stored(); ++i) {
    const std::uint32_t kept = rule.keep(block.element(i)) ? 1 : 0;
    mask[i] = static_cast<std::uint8_t>(kept & (block.channel(i) < channels ? 1U : 0U));
  }
}

TIDEPOOL_VECTOR_CLONES void apply_mask(float scale, const float* dy, const std::uint8_t* mask,
                                       float* dx, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = (mask[i] != 0 ? dy[i] : 0.0F) * scale;
}

Rule rule_of(const OpDesc& desc, const std::byte* control_bytes) {
  const auto& control = *reinterpret_cast<const ControlBlock*>(control_bytes);
  const auto& op = desc.get<DropoutAttributes>();
  return {dropout_key(control.seed, op.random_key, control.iteration), dropout_threshold(op.rate),
          op.scale()};
}

/// `mask` may be null.
void drop(const OpDesc& desc, Rule rule, int threads, const float* x, float* y,
          std::uint8_t* mask) {
  const TensorDesc& tensor = desc.operands[0];
  const std::int64_t before = desc.first_sample * (tensor.elements() / tensor.dims[0]);
  if (tensor.layout == Layout::plain) {
    return parallel_ranges(threads, tensor.elements(), kFloatGrain, [&](auto begin, auto end) {
      const auto first = static_cast<std::uint32_t>(before + begin);
      const auto count = static_cast<std::uint32_t>(end - begin);
      drop_plain(rule, first, count, x + begin, y + begin);
      if (mask != nullptr) mask_plain(rule, first, count, mask + begin);
    });
  }
  const std::int64_t channels = tensor.dims[1], area = tensor.dims[2] * tensor.dims[3];
  const std::int64_t lanes = block_of(tensor.layout);
  const std::int64_t blocks = (channels + lanes - 1) / lanes;
  const auto shift =
      static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint64_t>(lanes)));
  parallel_ranges(threads, tensor.dims[0] * blocks, 1, [&](auto begin, auto end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t sample = i / blocks, channel = i % blocks * lanes;
      const Block block{static_cast<std::uint32_t>(before + (sample * channels + channel) * area),
                        static_cast<std::uint32_t>(area), shift};
      const std::int64_t offset = i * area * lanes;
      drop_block(rule, block, x + offset, y + offset);
      if (mask == nullptr) continue;
      mask_block(rule, block, static_cast<std::uint32_t>(channels - channel), mask + offset);
    }
  });
}

/// Forward and backward in place are the same: both zero what is not kept and scale the rest.
void in_place(const OpDesc& desc, Pointers pointers, std::byte*, const KernelContext& context) {
  auto* x = reinterpret_cast<float*>(pointers[0]);
  drop(desc, rule_of(desc, pointers[1]), context.threads, x, x, nullptr);
}

void forward_dropout(const OpDesc& desc, Pointers pointers, std::byte*,
                     const KernelContext& context) {
  drop(desc, rule_of(desc, pointers[1]), context.threads,
       reinterpret_cast<const float*>(pointers[0]), reinterpret_cast<float*>(pointers[2]),
       reinterpret_cast<std::uint8_t*>(pointers[3]));
}

void backward_dropout(const OpDesc& desc, Pointers pointers, std::byte*,
                      const KernelContext& context) {
  const auto* dy = reinterpret_cast<const float*>(pointers[0]);
  const auto* mask = reinterpret_cast<const std::uint8_t*>(pointers[1]);
  auto* dx = reinterpret_cast<float*>(pointers[2]);
  const float scale = desc.get<DropoutBackward>().scale();
  parallel_ranges(context.threads, desc.operands[1].bytes(), kFloatGrain,
                  [&](auto begin, auto end) {
                    apply_mask(scale, dy + begin, mask + begin, dx + begin, end - begin);
                  });
}

bool takes(const TensorDesc& tensor) {
  const Layout order = in_blocks(tensor.layout, 16);
  return tensor.type == ElementType::f32 && (order == Layout::plain || order == Layout::nChw16c);
}

}  // namespace

std::unique_ptr<Kernel> make_dropout(const OpDesc& desc, const KernelContext& context) {
  const bool is_forward = desc.is<DropoutForward>();
  if (!is_forward && !desc.is<DropoutBackward>()) return nullptr;
  if (!takes(desc.operands[0])) return nullptr;
  KernelFunction function = is_forward ? forward_dropout : backward_dropout;
  if (desc.in_place) {
    function = in_place;
  } else if (desc.operands[is_forward ? 3 : 1].type != ElementType::u8) {
    return nullptr;
  }
  return std::make_unique<FunctionKernel>(desc, context, "loop", function);
}

}  // namespace tidepool::nn::cpu
