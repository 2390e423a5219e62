#include "nn/kernels/cpu/elementwise.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/parallel.h"
#include "nn/kernels/function_kernel.h"

namespace tidepool::nn::cpu {
namespace {

TIDEPOOL_VECTOR_CLONES void forward_range(const float* x, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] > 0 ? x[i] : 0.0F;
}

TIDEPOOL_VECTOR_CLONES void backward_range(const float* y, const float* dy, float* dx,
                                           std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = y[i] > 0 ? dy[i] : 0.0F;
}

void forward_relu(const OpDesc& desc, Pointers pointers, std::byte*, const KernelContext& context) {
  const auto* x = reinterpret_cast<const float*>(pointers[0]);
  auto* y = reinterpret_cast<float*>(pointers[desc.in_place ? 0 : 1]);
  parallel_ranges(context.threads, stored_floats(desc.operands[0]), kFloatGrain,
                  [&](auto begin, auto end) { forward_range(x + begin, y + begin, end - begin); });
}

void backward_relu(const OpDesc& desc, Pointers pointers, std::byte*,
                   const KernelContext& context) {
  const auto* y = reinterpret_cast<const float*>(pointers[0]);
  const auto* dy = reinterpret_cast<const float*>(pointers[1]);
  auto* dx = reinterpret_cast<float*>(pointers[desc.in_place ? 1 : 2]);
  parallel_ranges(context.threads, stored_floats(desc.operands[0]), kFloatGrain,
                  [&](auto begin, auto end) {
                    backward_range(y + begin, dy + begin, dx + begin, end - begin);
                  });
}

}  // namespace

std::unique_ptr<Kernel> make_relu(const OpDesc& desc, const KernelContext& context) {
  const bool is_forward = desc.is<ReluForward>();
  if (!is_forward && !desc.is<ReluBackward>()) return nullptr;
  if (!operands_agree(desc)) return nullptr;
  return std::make_unique<FunctionKernel>(desc, context, "loop",
                                          is_forward ? forward_relu : backward_relu);
}

}  // namespace tidepool::nn::cpu
