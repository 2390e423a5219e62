// Scaled dot-product attention with several heads (Vaswani et al. 2017). Inputs: queries, keys and
// values, each tokens x width; the projections around it are layers of their own. Causal: a token
// sees itself and those before it. There is no dropout on the attention weights, which the
// published models have: it would take two more square tensors a layer.
#pragma once

#include <cstdint>

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct Attention {
  std::int64_t heads = 1;  ///< divides the width
  bool causal = false;

  static constexpr LayerTraits traits{};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const Attention&, const Attention&) = default;
};

}  // namespace tidepool::nn
