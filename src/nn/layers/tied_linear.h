// Fully connected by the table of an embedding, as the output of a model of text: one weight tensor
// that two layers read (Press and Wolf 2017). The embedding owns it: its backward pass comes last,
// adds the gradient made here to its own by an op of its own, and updates the weight once.
#pragma once

#include <cstdint>
#include <string>

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct TiedLinear {
  std::string owner;          ///< an embedding earlier in the graph
  std::int64_t features = 0;  ///< its vocabulary
  bool bias = false;          ///< this layer's own

  static constexpr LayerTraits traits{.has_weights = true};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const TiedLinear&, const TiedLinear&) = default;
};

}  // namespace tidepool::nn
