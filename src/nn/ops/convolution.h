// Convolutions without bias (see channel_bias.h). Channels may come in groups: a filter sees those
// of its own group alone, and its weights are those of so many channels. The operands say how many
// groups there are; with one channel a group the convolution is called depthwise.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"
#include "nn/ops/window.h"

namespace tidepool::nn {

/// `x` is what the filters see, or its gradient.
inline std::int64_t convolution_groups(const TensorDesc& x, const TensorDesc& weight) {
  return x.dims[1] / weight.dims[1];
}

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
  static constexpr auto operands = std::array{reads("x"), reads("dy"), gradient("dweight")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands o) const { return convolution_flops(o[2], o[1]); }
};

}  // namespace tidepool::nn
