#include "nn/ops/adamw.h"

#include <cmath>

namespace tidepool::nn {
namespace {

/// By products alone, which are the same on every device: a library's pow need not be.
double power(double base, std::uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace

AdamwFactors adamw_factors(const AdamwUpdate& update, const ControlBlock& control) {
  const std::uint64_t t = control.iteration + 1;
  const auto rate = static_cast<double>(control.learning_rate);
  const auto beta1 = static_cast<double>(update.beta1), beta2 = static_cast<double>(update.beta2);
  return {static_cast<float>(1 - rate * static_cast<double>(update.weight_decay)),
          static_cast<float>(rate / (1 - power(beta1, t))),
          static_cast<float>(1 / std::sqrt(1 - power(beta2, t)))};
}

}  // namespace tidepool::nn
