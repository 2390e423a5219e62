// Convolution with a square window and no bias.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct Conv2d {
  std::int64_t channels = 0;
  std::int64_t window = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 1;

  static constexpr LayerTraits traits{.has_weights = true};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const Conv2d&, const Conv2d&) = default;
};

}  // namespace tidepool::nn
