#include <algorithm>
#include <cmath>

#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/parallel.h"
#include "nn/kernels/function_kernel.h"

namespace tidepool::nn::cpu {
namespace {

/// Probabilities of one sample; returns its loss, 0 where the label is negative.
float forward_row(const float* logits, std::int32_t label, float* probabilities,
                  std::int64_t classes) {
  const float largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (std::int64_t k = 0; k < classes; ++k) {
    probabilities[k] = std::exp(logits[k] - largest);
    sum += static_cast<double>(probabilities[k]);
  }
  const auto inverse = static_cast<float>(1 / sum);
  for (std::int64_t k = 0; k < classes; ++k) probabilities[k] *= inverse;
  return label < 0 ? 0.0F : static_cast<float>(std::log(sum)) - (logits[label] - largest);
}

/// The samples' losses meet in the workspace and are added in order, whatever the team size.
void forward(const OpDesc& desc, Pointers pointers, std::byte* workspace,
             const KernelContext& context) {
  const auto* logits = reinterpret_cast<const float*>(pointers[0]);
  const auto* labels = reinterpret_cast<const std::int32_t*>(pointers[1]);
  auto* loss = reinterpret_cast<float*>(pointers[2]);
  auto* probabilities = reinterpret_cast<float*>(pointers[3]);
  auto* losses = reinterpret_cast<float*>(workspace);
  const std::int64_t samples = desc.operands[0].dims[0], classes = desc.operands[0].dims[1];
  parallel_ranges(context.threads, samples, 1, [&](auto begin, auto end) {
    for (std::int64_t n = begin; n < end; ++n) {
      losses[n] =
          forward_row(logits + n * classes, labels[n], probabilities + n * classes, classes);
    }
  });
  double total = 0;
  for (std::int64_t n = 0; n < samples; ++n) total += static_cast<double>(losses[n]);
  *loss = static_cast<float>(total / static_cast<double>(desc.get<LossAttributes>().full_batch));
}

void backward(const OpDesc& desc, Pointers pointers, std::byte*, const KernelContext& context) {
  const auto* probabilities = reinterpret_cast<const float*>(pointers[0]);
  const auto* labels = reinterpret_cast<const std::int32_t*>(pointers[1]);
  auto* dlogits = reinterpret_cast<float*>(pointers[2]);
  const std::int64_t samples = desc.operands[0].dims[0], classes = desc.operands[0].dims[1];
  const auto batch = static_cast<float>(desc.get<LossAttributes>().full_batch);
  parallel_ranges(context.threads, samples, 1, [&](auto begin, auto end) {
    for (std::int64_t n = begin; n < end; ++n) {
      const float* p = probabilities + n * classes;
      float* d = dlogits + n * classes;
      const std::int32_t label = labels[n];
      if (label < 0) {
        std::fill_n(d, classes, 0.0F);
        continue;
      }
      for (std::int64_t k = 0; k < classes; ++k) d[k] = p[k] / batch;
      d[label] = (p[label] - 1) / batch;
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> make_softmax_loss(const OpDesc& desc, const KernelContext& context) {
  if (desc.is<SoftmaxLossForward>()) {
    const Bytes workspace = desc.operands[0].dims[0] * static_cast<Bytes>(sizeof(float));
    return std::make_unique<FunctionKernel>(desc, context, "loop", forward, workspace);
  }
  if (desc.is<SoftmaxLossBackward>()) {
    return std::make_unique<FunctionKernel>(desc, context, "loop", backward);
  }
  return nullptr;
}

}  // namespace tidepool::nn::cpu
