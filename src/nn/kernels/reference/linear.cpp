#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

void run(const LinearForward& /*op*/, const OpDesc& desc, Pointers pointers) {
  const auto x = read<float>(desc, pointers, 0);
  const auto weight = read<float>(desc, pointers, 1);
  const auto bias = read<float>(desc, pointers, 2);
  const auto y = write<float>(desc, pointers, 3);
  for_each_element(y, [&](auto n, auto o, auto, auto) {
    double sum = bias(o);
    for (std::int64_t i = 0; i < x.dim(1); ++i) {
      sum += static_cast<double>(x(n, i)) * weight(o, i);
    }
    y(n, o) = static_cast<float>(sum);
  });
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
  const auto x = read<float>(desc, pointers, 0);
  const auto dy = read<float>(desc, pointers, 1);
  const auto dweight = write<float>(desc, pointers, 2);
  const auto dbias = write<float>(desc, pointers, 3);
  for_each_element(dweight, [&](auto o, auto i, auto, auto) {
    double sum = 0;
    for (std::int64_t n = 0; n < x.dim(0); ++n) sum += static_cast<double>(x(n, i)) * dy(n, o);
    dweight(o, i) = static_cast<float>(sum);
  });
  for (std::int64_t o = 0; o < dy.dim(1); ++o) {
    double sum = 0;
    for (std::int64_t n = 0; n < dy.dim(0); ++n) sum += dy(n, o);
    dbias(o) = static_cast<float>(sum);
  }
}

}  // namespace tidepool::nn::reference
