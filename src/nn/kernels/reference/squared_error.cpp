#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {
namespace {

/// Terms of the mean: samples of the full batch times elements of a sample.
double terms(const LossAttributes& op, const TensorDesc& prediction) {
  return static_cast<double>(op.full_batch * (prediction.elements() / prediction.dims[0]));
}

}  // namespace

void run(const SquaredErrorForward& op, const OpDesc& desc, Pointers pointers) {
  const auto prediction = read<float>(desc, pointers, 0);
  const auto target = read<float>(desc, pointers, 1);
  const auto loss = write<float>(desc, pointers, 2);
  double total = 0;
  for_each_element(prediction, [&](auto n, auto c, auto h, auto w) {
    const double difference = static_cast<double>(prediction(n, c, h, w)) - target(n, c, h, w);
    total += difference * difference;
  });
  loss(0) = static_cast<float>(total / terms(op, desc.operands[0]));
}

void run(const SquaredErrorBackward& op, const OpDesc& desc, Pointers pointers) {
  const auto prediction = read<float>(desc, pointers, 0);
  const auto target = read<float>(desc, pointers, 1);
  const auto dprediction = write<float>(desc, pointers, 2);
  const double factor = 2 / terms(op, desc.operands[0]);
  for_each_element(dprediction, [&](auto n, auto c, auto h, auto w) {
    const double difference = static_cast<double>(prediction(n, c, h, w)) - target(n, c, h, w);
    dprediction(n, c, h, w) = static_cast<float>(factor * difference);
  });
}

}  // namespace tidepool::nn::reference
