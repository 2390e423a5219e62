#include <cmath>

#include "nn/kernels/cpu/elementwise.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/parallel.h"
#include "nn/kernels/function_kernel.h"

namespace tidepool::nn::cpu {
namespace {

struct AdamwRates {
  AdamwFactors factors;
  float beta1 = 0, beta2 = 0, epsilon = 0;
};

/// The addresses of one range of each operand.
struct Range {
  const float* gradient;
  float *weight, *first, *second;
  std::int64_t count;
};

TIDEPOOL_VECTOR_CLONES void update_range_adamw(AdamwRates rates, Range r) {
#pragma omp simd
  for (std::int64_t i = 0; i < r.count; ++i) {
    const float g = r.gradient[i];
    const float m = rates.beta1 * r.first[i] + (1 - rates.beta1) * g;
    const float v = rates.beta2 * r.second[i] + (1 - rates.beta2) * (g * g);
    r.first[i] = m;
    r.second[i] = v;
    r.weight[i] = rates.factors.keep * r.weight[i] -
                  rates.factors.step * m / (std::sqrt(v) * rates.factors.root + rates.epsilon);
  }
}

/// The padding of a blocked layout stays zero: its gradient and its moments are.
void update_adamw(const OpDesc& desc, Pointers pointers, std::byte*, const KernelContext& context) {
  const auto* gradient = reinterpret_cast<const float*>(pointers[0]);
  const auto& control = *reinterpret_cast<const ControlBlock*>(pointers[1]);
  auto* weight = reinterpret_cast<float*>(pointers[2]);
  auto* first = reinterpret_cast<float*>(pointers[3]);
  auto* second = reinterpret_cast<float*>(pointers[4]);
  const auto& op = desc.get<AdamwUpdate>();
  const AdamwRates rates{adamw_factors(op, control), op.beta1, op.beta2, op.epsilon};
  parallel_ranges(
      context.threads, stored_floats(desc.operands[2]), kFloatGrain, [&](auto begin, auto end) {
        update_range_adamw(
            rates, {gradient + begin, weight + begin, first + begin, second + begin, end - begin});
      });
}

}  // namespace

std::unique_ptr<Kernel> make_adamw(const OpDesc& desc, const KernelContext& context) {
  if (!desc.is<AdamwUpdate>()) return nullptr;
  for (const std::size_t operand : {0, 3, 4}) {
    if (desc.operands[operand] != desc.operands[2]) return nullptr;
  }
  return std::make_unique<FunctionKernel>(desc, context, "loop", update_adamw);
}

}  // namespace tidepool::nn::cpu
