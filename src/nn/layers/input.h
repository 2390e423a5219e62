// Input: data from outside, of any shape: images, labels, numbers of words, vectors.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct Input {
  ValueType type;  ///< of one sample

  static constexpr LayerTraits traits{.role = LayerRole::input};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const Input&, const Input&) = default;
};

}  // namespace tidepool::nn
