// {C, H, W} as {C*H*W}. A view where the bytes are in plain order already.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct Flatten {
  static constexpr LayerTraits traits{};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const Flatten&, const Flatten&) = default;
};

}  // namespace tidepool::nn
