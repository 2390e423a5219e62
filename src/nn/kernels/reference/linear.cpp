#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

namespace {

/// y = x weight' + bias; no bias: null.
void forward(const OpDesc& desc, Pointers pointers, const float* bias, std::size_t to) {
  const auto x = read<float>(desc, pointers, 0);
  const auto weight = read<float>(desc, pointers, 1);
  const auto y = write<float>(desc, pointers, to);
  for_each_element(y, [&](auto n, auto o, auto, auto) {
    double sum = bias == nullptr ? 0 : static_cast<double>(bias[o]);
    for (std::int64_t i = 0; i < x.dim(1); ++i) {
      sum += static_cast<double>(x(n, i)) * weight(o, i);
    }
    y(n, o) = static_cast<float>(sum);
  });
}

void backward_weights(const OpDesc& desc, Pointers pointers) {
  const auto x = read<float>(desc, pointers, 0);
  const auto dy = read<float>(desc, pointers, 1);
  const auto dweight = write<float>(desc, pointers, 2);
  for_each_element(dweight, [&](auto o, auto i, auto, auto) {
    double sum = 0;
    for (std::int64_t n = 0; n < x.dim(0); ++n) sum += static_cast<double>(x(n, i)) * dy(n, o);
    dweight(o, i) = static_cast<float>(sum);
  });
}

}  // namespace

void run(const LinearForward& /*op*/, const OpDesc& desc, Pointers pointers) {
  forward(desc, pointers, read<float>(desc, pointers, 2).data(), 3);
}

void run(const ProjectionForward& /*op*/, const OpDesc& desc, Pointers pointers) {
  forward(desc, pointers, nullptr, 2);
}

void run(const LinearBackwardData& /*op*/, const OpDesc& desc, Pointers pointers) {
  const auto dy = read<float>(desc, pointers, 0);
  const auto weight = read<float>(desc, pointers, 1);
  const auto dx = write<float>(desc, pointers, 2);
  for_each_element(dx, [&](auto n, auto i, auto, auto) {
    double sum = 0;
    for (std::int64_t o = 0; o < dy.dim(1); ++o) {
      sum += static_cast<double>(dy(n, o)) * weight(o, i);
    }
    dx(n, i) = static_cast<float>(sum);
  });
}

void run(const LinearBackwardWeights& /*op*/, const OpDesc& desc, Pointers pointers) {
  backward_weights(desc, pointers);
  const auto dy = read<float>(desc, pointers, 1);
  const auto dbias = write<float>(desc, pointers, 3);
  for (std::int64_t o = 0; o < dy.dim(1); ++o) {
    double sum = 0;
    for (std::int64_t n = 0; n < dy.dim(0); ++n) sum += dy(n, o);
    dbias(o) = static_cast<float>(sum);
  }
}

void run(const ProjectionBackwardWeights& /*op*/, const OpDesc& desc, Pointers pointers) {
  backward_weights(desc, pointers);
}

}  // namespace tidepool::nn::reference
