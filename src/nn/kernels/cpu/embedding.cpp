#include <algorithm>

#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/parallel.h"
#include "nn/kernels/function_kernel.h"

namespace tidepool::nn::cpu {
namespace {

TIDEPOOL_VECTOR_CLONES void add_row(const float* a, const float* b, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

/// Of the rows of a table, or null.
const float* row_of(const float* table, std::int32_t token, std::int64_t rows, std::int64_t width) {
  return token < 0 || token >= rows ? nullptr : table + token * width;
}

void forward_embedding(const OpDesc& desc, Pointers pointers, std::byte*,
                       const KernelContext& context) {
  const auto* tokens = reinterpret_cast<const std::int32_t*>(pointers[0]);
  const auto* table = reinterpret_cast<const float*>(pointers[1]);
  const auto* positions = reinterpret_cast<const float*>(pointers[2]);
  auto* y = reinterpret_cast<float*>(pointers[3]);
  const std::int64_t rows = desc.operands[1].dims[0], width = desc.operands[1].dims[1];
  const std::int64_t sequence = desc.operands[0].dims[1];
  parallel_ranges(context.threads, desc.operands[0].elements(), 1, [&](auto begin, auto end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float* position = positions + i % sequence * width;
      const float* row = row_of(table, tokens[i], rows, width);
      if (row == nullptr) {
        std::copy_n(position, width, y + i * width);
      } else {
        add_row(row, position, y + i * width, width);
      }
    }
  });
}

/// Each thread takes some columns and goes through the tokens in order: the sums are the same
/// whatever the number of threads.
void backward_embedding(const OpDesc& desc, Pointers pointers, std::byte*,
                        const KernelContext& context) {
  const auto* tokens = reinterpret_cast<const std::int32_t*>(pointers[0]);
  const auto* dy = reinterpret_cast<const float*>(pointers[1]);
  auto* dtable = reinterpret_cast<float*>(pointers[2]);
  auto* dpositions = reinterpret_cast<float*>(pointers[3]);
  const std::int64_t rows = desc.operands[2].dims[0], width = desc.operands[2].dims[1];
  const std::int64_t places = desc.operands[3].dims[0];
  const std::int64_t count = desc.operands[0].elements(), sequence = desc.operands[0].dims[1];
  parallel_ranges(context.threads, width, kFloatGrain, [&](auto begin, auto end) {
    const std::int64_t columns = end - begin;
    for (std::int64_t r = 0; r < rows; ++r) std::fill_n(dtable + r * width + begin, columns, 0.0F);
    for (std::int64_t r = 0; r < places; ++r) {
      std::fill_n(dpositions + r * width + begin, columns, 0.0F);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const float* d = dy + i * width + begin;
      float* position = dpositions + i % sequence * width + begin;
      add_row(position, d, position, columns);
      if (tokens[i] < 0 || tokens[i] >= rows) continue;
      float* row = dtable + tokens[i] * width + begin;
      add_row(row, d, row, columns);
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> make_embedding(const OpDesc& desc, const KernelContext& context) {
  if (desc.is<EmbeddingForward>()) {
    return std::make_unique<FunctionKernel>(desc, context, "loop", forward_embedding);
  }
  if (desc.is<EmbeddingBackward>()) {
    return std::make_unique<FunctionKernel>(desc, context, "loop", backward_embedding);
  }
  return nullptr;
}

}  // namespace tidepool::nn::cpu
