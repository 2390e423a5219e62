// Fully connected, with bias.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct Linear {
  std::int64_t features = 0;

  static constexpr LayerTraits traits{.has_weights = true};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const Linear&, const Linear&) = default;
};

}  // namespace tidepool::nn
