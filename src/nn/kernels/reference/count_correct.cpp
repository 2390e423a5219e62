#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

/// Written so that no comparison with a NaN counts as a success.
void run(const CountCorrect& /*op*/, const OpDesc& desc, Pointers pointers) {
  const auto logits = read<float>(desc, pointers, 0);
  const auto labels = read<std::int32_t>(desc, pointers, 1);
  const auto count = write<std::int32_t>(desc, pointers, 2);
  for_each_element(labels, [&](auto n, auto h, auto w, auto) {
    const std::int64_t label = labels(n, h, w);
    bool correct = label >= 0;
    for (std::int64_t k = 0; correct && k < logits.dim(1); ++k) {
      if (k < label) correct = logits(n, label, h, w) > logits(n, k, h, w);
      if (k > label) correct = logits(n, label, h, w) >= logits(n, k, h, w);
    }
    if (correct) ++count(0);
  });
}

}  // namespace tidepool::nn::reference
