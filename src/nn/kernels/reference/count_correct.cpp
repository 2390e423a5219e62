#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

/// Written so that no comparison with a NaN counts as a success.
void run(const CountCorrect& /*op*/, const OpDesc& desc, Pointers pointers) {
  const auto logits = read<float>(desc, pointers, 0);
  const auto labels = read<std::int32_t>(desc, pointers, 1);
  const auto count = write<std::int32_t>(desc, pointers, 2);
  for (std::int64_t n = 0; n < logits.dim(0); ++n) {
    const std::int64_t label = labels(n);
    bool correct = label >= 0;
    for (std::int64_t k = 0; correct && k < logits.dim(1); ++k) {
      if (k < label) correct = logits(n, label) > logits(n, k);
      if (k > label) correct = logits(n, label) >= logits(n, k);
    }
    if (correct) ++count(0);
  }
}

}  // namespace tidepool::nn::reference
