// Mean over square windows, without padding: every mean is over whole windows.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct AvgPool {
  std::int64_t window = 2;
  std::int64_t stride = 2;

  static constexpr LayerTraits traits{};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const AvgPool&, const AvgPool&) = default;
};

}  // namespace tidepool::nn
