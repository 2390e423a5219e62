// Maximum over square windows. Keeps the position of each maximum for the backward pass.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct MaxPool {
  std::int64_t window = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;

  static constexpr LayerTraits traits{};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const MaxPool&, const MaxPool&) = default;
};

}  // namespace tidepool::nn
