#include <algorithm>
#include <cmath>

#include "nn/kernels/cpu/class_rows.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/parallel.h"
#include "nn/kernels/function_kernel.h"

namespace tidepool::nn::cpu {
namespace {

/// Probabilities of one place; returns its loss, 0 where the label is negative.
template <class Logits, class Probabilities>
float forward_row(const Logits& logits, std::int32_t label, const Probabilities& probabilities,
                  std::int64_t classes) {
  float largest = logits[0];
  for (std::int64_t k = 1; k < classes; ++k) largest = std::max(largest, logits[k]);
  double sum = 0;
  for (std::int64_t k = 0; k < classes; ++k) {
    const float e = std::exp(logits[k] - largest);
    probabilities[k] = e;
    sum += static_cast<double>(e);
  }
  const auto inverse = static_cast<float>(1 / sum);
  for (std::int64_t k = 0; k < classes; ++k) probabilities[k] *= inverse;
  return label < 0 ? 0.0F : static_cast<float>(std::log(sum)) - (logits[label] - largest);
}

/// The samples' losses meet in the workspace and are added in order, whatever the team size.
void forward_softmax_loss(const OpDesc& desc, Pointers pointers, std::byte* workspace,
                          const KernelContext& context) {
  const auto* logits = reinterpret_cast<const float*>(pointers[0]);
  const auto* labels = reinterpret_cast<const std::int32_t*>(pointers[1]);
  auto* loss = reinterpret_cast<float*>(pointers[2]);
  auto* probabilities = reinterpret_cast<float*>(pointers[3]);
  auto* losses = reinterpret_cast<float*>(workspace);
  const ClassPlaces all(desc.operands[0]);
  parallel_ranges(context.threads, all.samples, 1, [&](auto begin, auto end) {
    for (std::int64_t n = begin; n < end; ++n) {
      double sum = 0;
      all.clear_padding(n, probabilities);
      const auto add_place = [&](std::int64_t place, const auto& from, const auto& to) {
        sum +=
            static_cast<double>(forward_row(from, labels[n * all.places + place], to, all.classes));
      };
      all.for_each(n, add_place, logits, probabilities);
      losses[n] = static_cast<float>(sum);
    }
  });
  double total = 0;
  for (std::int64_t n = 0; n < all.samples; ++n) total += static_cast<double>(losses[n]);
  *loss = static_cast<float>(total / static_cast<double>(desc.get<LossAttributes>().full_batch));
}

template <class Probabilities, class Gradient>
void backward_row(const Probabilities& p, std::int32_t label, const Gradient& d,
                  std::int64_t classes, float batch) {
  if (label < 0) {
    for (std::int64_t k = 0; k < classes; ++k) d[k] = 0;
    return;
  }
  for (std::int64_t k = 0; k < classes; ++k) d[k] = p[k] / batch;
  d[label] = (p[label] - 1) / batch;
}

void backward_softmax_loss(const OpDesc& desc, Pointers pointers, std::byte*,
                           const KernelContext& context) {
  const auto* probabilities = reinterpret_cast<const float*>(pointers[0]);
  const auto* labels = reinterpret_cast<const std::int32_t*>(pointers[1]);
  auto* dlogits = reinterpret_cast<float*>(pointers[2]);
  const ClassPlaces all(desc.operands[0]);
  const auto batch = static_cast<float>(desc.get<LossAttributes>().full_batch);
  parallel_ranges(context.threads, all.samples, 1, [&](auto begin, auto end) {
    for (std::int64_t n = begin; n < end; ++n) {
      all.clear_padding(n, dlogits);
      const auto place_gradient = [&](std::int64_t place, const auto& from, const auto& to) {
        backward_row(from, labels[n * all.places + place], to, all.classes, batch);
      };
      all.for_each(n, place_gradient, probabilities, dlogits);
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> make_softmax_loss(const OpDesc& desc, const KernelContext& context) {
  if (desc.is<SoftmaxLossForward>() && desc.operands[0] == desc.operands[3]) {
    const Bytes workspace = desc.operands[0].dims[0] * static_cast<Bytes>(sizeof(float));
    return std::make_unique<FunctionKernel>(desc, context, "loop", forward_softmax_loss, workspace);
  }
  if (desc.is<SoftmaxLossBackward>() && desc.operands[0] == desc.operands[2]) {
    return std::make_unique<FunctionKernel>(desc, context, "loop", backward_softmax_loss);
  }
  return nullptr;
}

}  // namespace tidepool::nn::cpu
