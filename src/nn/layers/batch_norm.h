// Batch norm over channels, with the statistics of the batch; learnable scale and shift (Ioffe and
// Szegedy 2015). Without training it takes the running statistics.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct BatchNorm {
  float epsilon = 1e-5F;
  float statistics_momentum = 0.1F;

  static constexpr LayerTraits traits{.has_weights = true, .batch_statistics = true};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const BatchNorm&, const BatchNorm&) = default;
};

}  // namespace tidepool::nn
