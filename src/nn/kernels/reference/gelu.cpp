#include <cmath>
#include <numbers>

#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {
namespace {

/// Of the normal distribution. As a complement, so that small values keep their digits.
double distribution(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

double density(double x) {
  return std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

}  // namespace

void run(const GeluForward& /*op*/, const OpDesc& desc, Pointers pointers) {
  const auto x = read<float>(desc, pointers, 0);
  const auto y = write<float>(desc, pointers, 1);
  for_each_element(y, [&](auto n, auto c, auto h, auto w) {
    const double value = x(n, c, h, w);
    y(n, c, h, w) = static_cast<float>(value * distribution(value));
  });
}

void run(const GeluBackward& /*op*/, const OpDesc& desc, Pointers pointers) {
  const auto x = read<float>(desc, pointers, 0);
  const auto dy = update<float>(desc, pointers, 1);
  const auto dx = desc.in_place ? dy : write<float>(desc, pointers, 2);
  for_each_element(dx, [&](auto n, auto c, auto h, auto w) {
    const double value = x(n, c, h, w);
    const double slope = distribution(value) + value * density(value);
    dx(n, c, h, w) = static_cast<float>(dy(n, c, h, w) * slope);
  });
}

}  // namespace tidepool::nn::reference
