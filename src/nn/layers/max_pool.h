// Maximum over windows. Keeps the position of each maximum for the backward pass.
#pragma once

#include "nn/layers/layer_kind.h"
#include "nn/ops/window.h"

namespace tidepool::nn {

struct MaxPool {
  Size2d window = 2;
  std::int64_t stride = 2;
  Size2d padding = 0;

  static constexpr LayerTraits traits{};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const MaxPool&, const MaxPool&) = default;
};

}  // namespace tidepool::nn
