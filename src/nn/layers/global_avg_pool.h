// Mean over each channel of an image.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct GlobalAvgPool {
  static constexpr LayerTraits traits{};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const GlobalAvgPool&, const GlobalAvgPool&) = default;
};

}  // namespace tidepool::nn
