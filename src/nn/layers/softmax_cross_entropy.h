// Loss: softmax cross-entropy. Inputs: logits and labels, one class index per sample. Output: the
// mean over the batch; without training the sum over the samples.
#pragma once

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct SoftmaxCrossEntropy {
  static constexpr LayerTraits traits{.role = LayerRole::loss, .classifies = true};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const SoftmaxCrossEntropy&, const SoftmaxCrossEntropy&) = default;
};

}  // namespace tidepool::nn
