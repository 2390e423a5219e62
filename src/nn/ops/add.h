// Addition of two tensors of one shape, the second times a number; also sums gradients.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

/// y = a + factor * b; with a factor of 1 its bits are those of a + b.
struct AddForward {
  float factor = 1;

  static constexpr const char* name = "add_forward";
  static constexpr auto operands = std::array{reads("a", When::apart), updates("a", When::in_place),
                                              reads("b"), writes("y", When::apart)};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return count(o[0]); }
};

}  // namespace tidepool::nn
