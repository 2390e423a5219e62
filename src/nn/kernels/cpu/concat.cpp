#include <algorithm>
#include <cstring>

#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/parallel.h"
#include "nn/kernels/function_kernel.h"

namespace tidepool::nn::cpu {
namespace {

/// Some channels of one image of a tensor, from `first` on.
struct Channels {
  const TensorDesc& desc;
  std::byte* tensor;
  std::int64_t image;
  std::int64_t first;

  [[nodiscard]] std::int64_t area() const { return desc.dims[2] * desc.dims[3]; }
  /// Channels of a block; 1 where the tensor is plain.
  [[nodiscard]] std::int64_t block() const { return block_of(desc.layout); }
  [[nodiscard]] float* channel(std::int64_t index) const {
    return reinterpret_cast<float*>(tensor) + desc.offset(image, first + index, 0, 0);
  }
  /// So many of them are whole blocks, or those at the end with the padding behind them.
  [[nodiscard]] bool whole_blocks(std::int64_t count) const {
    return first % block() == 0 && (count % block() == 0 || first + count == desc.dims[1]);
  }
};

/// The padding behind the last channel.
void clear_padding(const Channels& to) {
  const std::int64_t block = to.block(), within = to.desc.dims[1] % block;
  if (within == 0) return;
  const Channels last{to.desc, to.tensor, to.image, to.desc.dims[1] - within};
  float* pixels = last.channel(0);
  for (std::int64_t i = 0; i < last.area(); ++i) {
    std::fill(pixels + i * block + within, pixels + (i + 1) * block, 0.0F);
  }
}

void copy_channels(const Channels& from, const Channels& to, std::int64_t count) {
  const std::int64_t area = from.area(), block = from.block();
  if (from.whole_blocks(count) && to.whole_blocks(count)) {
    const std::int64_t stored = align_up(count, block);
    std::memcpy(to.channel(0), from.channel(0),
                static_cast<std::size_t>(stored * area) * sizeof(float));
    return;
  }
  for (std::int64_t c = 0; c < count; ++c) {
    const float* source = from.channel(c);
    float* target = to.channel(c);
    for (std::int64_t i = 0; i < area; ++i) target[i * block] = source[i * block];
  }
}

void concatenate(const OpDesc& desc, Pointers pointers, std::byte*, const KernelContext& context) {
  const std::size_t last = desc.operands.size() - 1;
  const TensorDesc& y = desc.operands[last];
  parallel_ranges(context.threads, y.dims[0], 1, [&](auto begin, auto end) {
    for (std::int64_t image = begin; image < end; ++image) {
      clear_padding({y, pointers[last], image, 0});
      std::int64_t first = 0;
      for (std::size_t i = 0; i < last; ++i) {
        const TensorDesc& x = desc.operands[i];
        copy_channels({x, pointers[i], image, 0}, {y, pointers[last], image, first}, x.dims[1]);
        first += x.dims[1];
      }
    }
  });
}

void slice(const OpDesc& desc, Pointers pointers, std::byte*, const KernelContext& context) {
  const TensorDesc &dy = desc.operands[0], &dx = desc.operands[1];
  const std::int64_t first = desc.get<ConcatBackward>().first_channel;
  parallel_ranges(context.threads, dx.dims[0], 1, [&](auto begin, auto end) {
    for (std::int64_t image = begin; image < end; ++image) {
      const Channels to{dx, pointers[1], image, 0};
      clear_padding(to);
      copy_channels({dy, pointers[0], image, first}, to, dx.dims[1]);
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> make_concat(const OpDesc& desc, const KernelContext& context) {
  const bool is_forward = desc.is<ConcatForward>();
  if (!is_forward && !desc.is<ConcatBackward>()) return nullptr;
  const Layout layout = desc.operands[0].layout;
  const auto differs = [&](const TensorDesc& operand) { return operand.layout != layout; };
  if (std::any_of(desc.operands.begin(), desc.operands.end(), differs)) return nullptr;
  return std::make_unique<FunctionKernel>(desc, context, "loop", is_forward ? concatenate : slice);
}

}  // namespace tidepool::nn::cpu
