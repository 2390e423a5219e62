#include "nn/kernels/cpu/elementwise.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/parallel.h"
#include "nn/kernels/function_kernel.h"

namespace tidepool::nn::cpu {
namespace {

TIDEPOOL_VECTOR_CLONES void add_range(const float* a, const float* b, float factor, float* y,
                                      std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] + factor * b[i];
}

void add(const OpDesc& desc, Pointers pointers, std::byte*, const KernelContext& context) {
  const auto* a = reinterpret_cast<const float*>(pointers[0]);
  const auto* b = reinterpret_cast<const float*>(pointers[1]);
  auto* y = reinterpret_cast<float*>(pointers[desc.in_place ? 0 : 2]);
  const float factor = desc.get<AddForward>().factor;
  parallel_ranges(context.threads, stored_floats(desc.operands[0]), kFloatGrain,
                  [&](auto begin, auto end) {
                    add_range(a + begin, b + begin, factor, y + begin, end - begin);
                  });
}

}  // namespace

std::unique_ptr<Kernel> make_add(const OpDesc& desc, const KernelContext& context) {
  if (!desc.is<AddForward>() || !operands_agree(desc)) return nullptr;
  return std::make_unique<FunctionKernel>(desc, context, "loop", add);
}

}  // namespace tidepool::nn::cpu
