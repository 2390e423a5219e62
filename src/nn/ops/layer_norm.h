// Layer norm (Ba, Kiros and Hinton 2016) over the last dimension: x is rows x width, mean and
// (biased) variance have one number a row, scale and shift one a column.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

struct LayerNormAttributes {
  float epsilon = 1e-5F;
};

/// y = (x - mean) / sqrt(variance + epsilon) * scale + shift
struct LayerNormForward : LayerNormAttributes {
  static constexpr const char* name = "layer_norm_forward";
  static constexpr auto operands = std::array{reads("x"),  reads("scale"), reads("shift"),
                                              writes("y"), writes("mean"), writes("variance")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return 7 * count(o[0]); }
};

struct LayerNormBackward : LayerNormAttributes {
  static constexpr const char* name = "layer_norm_backward";
  static constexpr auto operands = std::array{
      reads("x"),        reads("dy", When::apart), updates("d", When::in_place), reads("mean"),
      reads("variance"), reads("scale"),           writes("dx", When::apart),    gradient("dscale"),
      gradient("dshift")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return 11 * count(o[0]); }
};

}  // namespace tidepool::nn
