// Fully connected layers with bias; projections without (LinearBackwardData is theirs, too).
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

inline double linear_flops(const TensorDesc& weight, const TensorDesc& batch) {
  return 2 * count(weight) * static_cast<double>(batch.dims[0]);
}

struct LinearForward {
  static constexpr const char* name = "linear_forward";
  static constexpr auto operands =
      std::array{reads("x"), reads("weight"), reads("bias"), writes("y")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return linear_flops(o[1], o[0]); }
};

struct LinearBackwardData {
  static constexpr const char* name = "linear_backward_data";
  static constexpr auto operands = std::array{reads("dy"), reads("weight"), writes("dx")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return linear_flops(o[1], o[0]); }
};

struct LinearBackwardWeights {
  static constexpr const char* name = "linear_backward_weights";
  static constexpr auto operands =
      std::array{reads("x"), reads("dy"), gradient("dweight"), gradient("dbias")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return linear_flops(o[2], o[0]); }
};

struct ProjectionForward {
  static constexpr const char* name = "projection_forward";
  static constexpr auto operands = std::array{reads("x"), reads("weight"), writes("y")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return linear_flops(o[1], o[0]); }
};

struct ProjectionBackwardWeights {
  static constexpr const char* name = "projection_backward_weights";
  static constexpr auto operands = std::array{reads("x"), reads("dy"), gradient("dweight")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return linear_flops(o[2], o[0]); }
};

}  // namespace tidepool::nn
