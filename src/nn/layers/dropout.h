// Dropout (Srivastava et al. 2014): zeroes elements at random and scales the rest.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct Dropout {
  float rate = 0.5F;  ///< probability of a zero, in [0, 1)

  static constexpr LayerTraits traits{};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const Dropout&, const Dropout&) = default;
};

}  // namespace tidepool::nn
