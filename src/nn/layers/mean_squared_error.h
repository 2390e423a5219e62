// Loss: the mean of squared differences, over the batch and over the elements of a sample. Inputs:
// prediction and target, floats of one shape. There is no CUDA kernel for it yet: building a
// program for that device is refused.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct MeanSquaredError {
  static constexpr LayerTraits traits{.role = LayerRole::loss};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const MeanSquaredError&, const MeanSquaredError&) = default;
};

}  // namespace tidepool::nn
