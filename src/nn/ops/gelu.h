// GELU (Hendrycks and Gimpel 2016) in its exact form, y = x * Phi(x) with
// Phi(x) = (1 + erf(x / sqrt(2))) / 2: what torch.nn.GELU computes unless told otherwise.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

struct GeluForward {
  static constexpr const char* name = "gelu_forward";
  static constexpr auto operands = std::array{reads("x"), writes("y")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return 10 * count(o[0]); }
};

/// dx = dy * (Phi(x) + x * phi(x)), phi the density of the normal distribution.
struct GeluBackward {
  static constexpr const char* name = "gelu_backward";
  static constexpr auto operands =
      std::array{reads("x"), reads("dy", When::apart), writes("dx", When::apart),
                 updates("d", When::in_place)};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return 18 * count(o[0]); }
};

}  // namespace tidepool::nn
