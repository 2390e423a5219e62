// Images of one size, one after the other along the channels.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct Concat {
  static constexpr LayerTraits traits{};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const Concat&, const Concat&) = default;
};

}  // namespace tidepool::nn
