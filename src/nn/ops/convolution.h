// Convolutions without bias.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"
#include "nn/ops/window.h"

namespace tidepool::nn {

/// Every output position of a convolution takes one multiply-add per weight of its filter.
inline double convolution_flops(const TensorDesc& weight, const TensorDesc& y) {
  return 2 * count(weight) * static_cast<double>(y.dims[0]) * static_cast<double>(y.dims[2]) *
         static_cast<double>(y.dims[3]);
}

struct ConvForward : Window {
  static constexpr const char* name = "conv_forward";
  static constexpr auto operands = std::array{reads("x"), reads("weight"), writes("y")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return convolution_flops(o[1], o[2]); }
};

/// The weight comes in the layout of backward-data.
struct ConvBackwardData : Window {
  static constexpr const char* name = "conv_backward_data";
  static constexpr auto operands = std::array{reads("dy"), reads("weight"), writes("dx")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return convolution_flops(o[1], o[0]); }
};

struct ConvBackwardWeights : Window {
  static constexpr const char* name = "conv_backward_weights";
  static constexpr auto operands = std::array{reads("x"), reads("dy"), writes("dweight")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return convolution_flops(o[2], o[1]); }
};

}  // namespace tidepool::nn
