#include "nn/kernels/cpu/class_rows.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/function_kernel.h"

namespace tidepool::nn::cpu {
namespace {

/// No comparison with a NaN counts as a success.
template <class Logits>
bool is_correct(const Logits& logits, std::int64_t label, std::int64_t classes) {
  if (label < 0) return false;
  const float own = logits[label];
  for (std::int64_t k = 0; k < label; ++k) {
    if (!(own > logits[k])) return false;
  }
  for (std::int64_t k = label + 1; k < classes; ++k) {
    if (!(own >= logits[k])) return false;
  }
  return true;
}

void count(const OpDesc& desc, Pointers pointers, std::byte*, const KernelContext& context) {
  const auto* logits = reinterpret_cast<const float*>(pointers[0]);
  const auto* labels = reinterpret_cast<const std::int32_t*>(pointers[1]);
  const ClassPlaces all(desc.operands[0]);
  std::int32_t total = 0;
  const int threads = context.threads;
#pragma omp parallel for num_threads(threads) reduction(+ : total)
  for (std::int64_t n = 0; n < all.samples; ++n) {
    const auto count_place = [&](std::int64_t place, const auto& of_place) {
      if (is_correct(of_place, labels[n * all.places + place], all.classes)) ++total;
    };
    all.for_each(n, count_place, logits);
  }
  *reinterpret_cast<std::int32_t*>(pointers[2]) = total;
}

}  // namespace

std::unique_ptr<Kernel> make_count_correct(const OpDesc& desc, const KernelContext& context) {
  if (!desc.is<CountCorrect>()) return nullptr;
  return std::make_unique<FunctionKernel>(desc, context, "loop", count);
}

}  // namespace tidepool::nn::cpu
