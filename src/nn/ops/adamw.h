// AdamW (Loshchilov and Hutter 2019).
#pragma once

#include <array>

#include "nn/ops/control_block.h"
#include "nn/ops/op_kind.h"

namespace tidepool::nn {

/// In iteration t - 1: w -= lr*decay*w; m = beta1*m + (1 - beta1)*g; v = beta2*v + (1 - beta2)*g*g;
/// w -= lr * m/(1 - beta1^t) / (sqrt(v/(1 - beta2^t)) + epsilon)
struct AdamwUpdate {
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0;

  static constexpr const char* name = "adamw_update";
  static constexpr auto operands =
      std::array{reads("gradient"), reads("control"), updates("weight"), updates("first_moment"),
                 updates("second_moment")};
  static constexpr auto role = OpRole::weight_update;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return 14 * count(o[2]); }
};

/// What an update takes from the iteration number and the learning rate, the same on every device:
/// w = keep * w - step * m / (sqrt(v) * root + epsilon).
struct AdamwFactors {
  float keep = 1;  ///< 1 - lr*decay
  float step = 0;  ///< lr / (1 - beta1^t)
  float root = 1;  ///< 1 / sqrt(1 - beta2^t)
};
AdamwFactors adamw_factors(const AdamwUpdate& update, const ControlBlock& control);

}  // namespace tidepool::nn
