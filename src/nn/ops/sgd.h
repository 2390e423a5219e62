// Stochastic gradient descent with momentum.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

/// m = momentum*m + (g + decay*w); w -= lr*m
struct SgdUpdate {
  float momentum = 0.9F;
  float weight_decay = 0;

  static constexpr const char* name = "sgd_update";
  static constexpr auto operands =
      std::array{reads("gradient"), reads("control"), updates("weight"), updates("momentum")};
  static constexpr auto role = OpRole::weight_update;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return 6 * count(o[2]); }
};

}  // namespace tidepool::nn
