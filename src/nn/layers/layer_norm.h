// Layer norm (Ba, Kiros and Hinton 2016) over the last dimension of vectors or sequences of
// vectors, with learnable scale and shift.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct LayerNorm {
  float epsilon = 1e-5F;

  static constexpr LayerTraits traits{.has_weights = true};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const LayerNorm&, const LayerNorm&) = default;
};

}  // namespace tidepool::nn
