// Convolution. With as many groups as channels it is depthwise: every filter sees one channel.
#pragma once

#include "nn/layers/layer_kind.h"
#include "nn/ops/window.h"

namespace tidepool::nn {

struct Conv2d {
  std::int64_t channels = 0;
  Size2d window = 3;
  std::int64_t stride = 1;
  Size2d padding = 1;
  std::int64_t groups = 1;  ///< divides the channels of input and output
  bool bias = false;        ///< added by an op of its own to what the convolution made
  bool zero = false;        ///< starts as zeros, not as random numbers

  static constexpr LayerTraits traits{.has_weights = true};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const Conv2d&, const Conv2d&) = default;
};

}  // namespace tidepool::nn
