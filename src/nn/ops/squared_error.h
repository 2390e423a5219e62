// Mean squared error: over samples and over the elements of each.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"
#include "nn/ops/softmax_loss.h"

namespace tidepool::nn {

struct SquaredErrorForward : LossAttributes {
  static constexpr const char* name = "squared_error_forward";
  static constexpr auto operands = std::array{reads("prediction"), reads("target"), writes("loss")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return 3 * count(o[0]); }
};

struct SquaredErrorBackward : LossAttributes {
  static constexpr const char* name = "squared_error_backward";
  static constexpr auto operands =
      std::array{reads("prediction"), reads("target"), writes("dprediction")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return 2 * count(o[0]); }
};

}  // namespace tidepool::nn
