#include "nn/ops/adamw.h"

#include <cmath>

namespace tidepool::nn {

AdamwFactors adamw_factors(const AdamwUpdate& update, const ControlBlock& control) {
  const auto t = static_cast<double>(control.iteration) + 1;
  const auto rate = static_cast<double>(control.learning_rate);
  const auto beta1 = static_cast<double>(update.beta1), beta2 = static_cast<double>(update.beta2);
  return {static_cast<float>(1 - rate * static_cast<double>(update.weight_decay)),
          static_cast<float>(rate / (1 - std::pow(beta1, t))),
          static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t)))};
}

}  // namespace tidepool::nn
