// ReLU. The backward pass looks for where the output is positive.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

struct ReluForward {
  static constexpr const char* name = "relu_forward";
  static constexpr auto operands =
      std::array{reads("x", When::apart), writes("y", When::apart), updates("y", When::in_place)};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return count(o[0]); }
};

struct ReluBackward {
  static constexpr const char* name = "relu_backward";
  static constexpr auto operands =
      std::array{reads("y"), reads("dy", When::apart), writes("dx", When::apart),
                 updates("d", When::in_place), reads("x", When::reads_forward)};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return count(o[0]); }
};

}  // namespace tidepool::nn
