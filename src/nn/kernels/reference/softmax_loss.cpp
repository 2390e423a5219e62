#include <algorithm>
#include <cmath>

#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

/// The labels of a matrix of logits have one index, those of images three.
void run(const SoftmaxLossForward& op, const OpDesc& desc, Pointers pointers) {
  const auto logits = read<float>(desc, pointers, 0);
  const auto labels = read<std::int32_t>(desc, pointers, 1);
  const auto loss = write<float>(desc, pointers, 2);
  const auto probabilities = write<float>(desc, pointers, 3);
  const std::int64_t classes = logits.dim(1);
  double total = 0;
  for_each_element(labels, [&](auto n, auto h, auto w, auto) {
    double largest = logits(n, 0, h, w);
    for (std::int64_t k = 1; k < classes; ++k) {
      largest = std::max(largest, static_cast<double>(logits(n, k, h, w)));
    }
    double sum = 0;
    for (std::int64_t k = 0; k < classes; ++k) sum += std::exp(logits(n, k, h, w) - largest);
    for (std::int64_t k = 0; k < classes; ++k) {
      probabilities(n, k, h, w) = static_cast<float>(std::exp(logits(n, k, h, w) - largest) / sum);
    }
    const std::int64_t label = labels(n, h, w);
    if (label >= 0) total += std::log(sum) - (logits(n, label, h, w) - largest);
  });
  loss(0) = static_cast<float>(total / static_cast<double>(op.full_batch));
}

void run(const SoftmaxLossBackward& op, const OpDesc& desc, Pointers pointers) {
  const auto probabilities = read<float>(desc, pointers, 0);
  const auto labels = read<std::int32_t>(desc, pointers, 1);
  const auto dlogits = write<float>(desc, pointers, 2);
  const auto batch = static_cast<float>(op.full_batch);
  for_each_element(dlogits, [&](auto n, auto k, auto h, auto w) {
    if (labels(n, h, w) < 0) return;
    dlogits(n, k, h, w) =
        (probabilities(n, k, h, w) - (k == labels(n, h, w) ? 1.0F : 0.0F)) / batch;
  });
}

}  // namespace tidepool::nn::reference
