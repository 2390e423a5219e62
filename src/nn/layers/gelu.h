// GELU (Hendrycks and Gimpel 2016), exact; see nn/ops/gelu.h. Its backward pass reads its input.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct Gelu {
  static constexpr LayerTraits traits{};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const Gelu&, const Gelu&) = default;
};

}  // namespace tidepool::nn
