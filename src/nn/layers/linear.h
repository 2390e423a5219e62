// Fully connected, with bias. Of a sequence of vectors it takes each by itself.
#pragma once

#include <cstdint>

#include "nn/initialiser.h"
#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct Linear {
  std::int64_t features = 0;
  Initialiser initialiser = Initialiser::he_normal;  ///< of the weight

  static constexpr LayerTraits traits{.has_weights = true};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const Linear&, const Linear&) = default;
};

}  // namespace tidepool::nn
