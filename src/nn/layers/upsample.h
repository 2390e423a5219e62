// Upsampling by a whole factor: to squares of one value, or bilinear (ops/upsample.h). Without
// weights; ConvTranspose2d learns how.
#pragma once

#include <cstdint>

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct Upsample {
  std::int64_t factor = 2;
  bool bilinear = false;

  static constexpr LayerTraits traits{};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const Upsample&, const Upsample&) = default;
};

}  // namespace tidepool::nn
