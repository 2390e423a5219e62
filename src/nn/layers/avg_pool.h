// Mean over windows. Padding does not count: a mean is over what its window has of the image.
#pragma once

#include "nn/layers/layer_kind.h"
#include "nn/ops/window.h"

namespace tidepool::nn {

struct AvgPool {
  Size2d window = 2;
  std::int64_t stride = 2;
  Size2d padding = 0;

  static constexpr LayerTraits traits{};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const AvgPool&, const AvgPool&) = default;
};

}  // namespace tidepool::nn
