// Transposed convolution ("deconvolution" in Long et al. 2015, section 3.3): what the convolution
// of this window, stride and padding does to gradients, as a forward pass. Its ops are those of
// that convolution, in other phases, with all their algorithms: forward is its backward-data, and
// the gradient of the input its forward. A weight has one filter for each channel of the input.
#pragma once

#include "nn/layers/layer_kind.h"
#include "nn/ops/window.h"

namespace tidepool::nn {

struct ConvTranspose2d {
  std::int64_t channels = 0;
  Size2d window = 2;
  std::int64_t stride = 2;
  Size2d padding = 0;     ///< is cut off the output on both sides
  bool bias = false;      ///< added by an op of its own
  bool bilinear = false;  ///< starts as bilinear upsampling of each channel

  static constexpr LayerTraits traits{.has_weights = true};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const ConvTranspose2d&, const ConvTranspose2d&) = default;
};

}  // namespace tidepool::nn
