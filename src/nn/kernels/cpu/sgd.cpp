#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/parallel.h"
#include "nn/kernels/function_kernel.h"

namespace tidepool::nn::cpu {
namespace {

struct SgdRates {
  float momentum = 0, weight_decay = 0, learning_rate = 0;
};

TIDEPOOL_VECTOR_CLONES void update_range_sgd(SgdRates rates, const float* gradient, float* weight,
                                             float* momentum, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float decayed = gradient[i] + rates.weight_decay * weight[i];
    momentum[i] = rates.momentum * momentum[i] + decayed;
    weight[i] -= rates.learning_rate * momentum[i];
  }
}

void update_sgd(const OpDesc& desc, Pointers pointers, std::byte*, const KernelContext& context) {
  const auto* gradient = reinterpret_cast<const float*>(pointers[0]);
  const auto& control = *reinterpret_cast<const ControlBlock*>(pointers[1]);
  auto* weight = reinterpret_cast<float*>(pointers[2]);
  auto* momentum = reinterpret_cast<float*>(pointers[3]);
  const auto& op = desc.get<SgdUpdate>();
  const SgdRates rates{op.momentum, op.weight_decay, control.learning_rate};
  const std::int64_t count = desc.operands[2].bytes() / static_cast<Bytes>(sizeof(float));
  parallel_ranges(context.threads, count, kFloatGrain, [&](auto begin, auto end) {
    update_range_sgd(rates, gradient + begin, weight + begin, momentum + begin, end - begin);
  });
}

}  // namespace

std::unique_ptr<Kernel> make_sgd(const OpDesc& desc, const KernelContext& context) {
  if (!desc.is<SgdUpdate>()) return nullptr;
  const auto& operands = desc.operands;
  if (operands[0] != operands[2] || operands[3] != operands[2]) return nullptr;
  return std::make_unique<FunctionKernel>(desc, context, "loop", update_sgd);
}

}  // namespace tidepool::nn::cpu
