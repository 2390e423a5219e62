// ReLU. Its backward pass reads its output.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct Relu {
  static constexpr LayerTraits traits{.reads_sign_of_output = true};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const Relu&, const Relu&) = default;
};

}  // namespace tidepool::nn
