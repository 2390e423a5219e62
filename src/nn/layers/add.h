// The sum of two values of the same shape.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct Add {
  static constexpr LayerTraits traits{};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const Add&, const Add&) = default;
};

}  // namespace tidepool::nn
