// Loss: softmax cross-entropy. Inputs: logits and labels: one class index per sample, one per token
// where the logits are a sequence of vectors, one per pixel where they are an image with a channel
// for each class. A negative label adds nothing. Output: the mean over the batch, of its samples,
// tokens or pixels; without training the sum over the samples of that mean.
#pragma once

#include <cstdint>

#include "nn/layers/layer_kind.h"

namespace tidepool::nn {

struct SoftmaxCrossEntropy {
  /// Labels of a sample that are not negative, the same number in each: the mean is over these. 0:
  /// all.
  std::int64_t answers = 0;

  static constexpr LayerTraits traits{.role = LayerRole::loss, .classifies = true};
  [[nodiscard]] Result<ValueType> infer(InputTypes inputs) const;
  void forward(const ForwardPass& f) const;
  void backward(const BackwardPass& b) const;
  friend bool operator==(const SoftmaxCrossEntropy&, const SoftmaxCrossEntropy&) = default;
};

}  // namespace tidepool::nn
