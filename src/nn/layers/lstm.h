// Long short-term memory (Hochreiter and Schmidhuber 1997, Gers et al. 2000) over a sequence of
// vectors: one op forward and two backward, see ops/lstm.h. Every sample starts from zeros. One
// bias, where cuDNN and PyTorch add two. Weights start normal with the variance of PyTorch's
// uniform ones, 1 / (3 hidden); the bias with zeros.
#pragma once

#include <cstdint>

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct Lstm {
  std::int64_t hidden = 0;  ///< numbers of the output at each step

  static constexpr LayerTraits traits{.has_weights = true, .reads_output = true};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const Lstm&, const Lstm&) = default;
};

}  // namespace tidepool::nn
