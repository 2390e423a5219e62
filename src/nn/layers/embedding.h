// Embedding of tokens and of their positions, both learnt (Devlin et al. 2019, Radford et al.
// 2019). Input: indices into the table, one for each token; output: a row of `width` for each.
#pragma once

#include <cstdint>

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct Embedding {
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;
  std::int64_t positions = 0;  ///< at least as many as a sample has tokens

  static constexpr LayerTraits traits{.has_weights = true};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const Embedding&, const Embedding&) = default;
};

}  // namespace tidepool::nn
