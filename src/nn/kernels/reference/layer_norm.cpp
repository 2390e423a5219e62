#include <cmath>

#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

void run(const LayerNormForward& op, const OpDesc& desc, Pointers pointers) {
  const auto x = read<float>(desc, pointers, 0);
  const auto scale = read<float>(desc, pointers, 1);
  const auto shift = read<float>(desc, pointers, 2);
  const auto y = write<float>(desc, pointers, 3);
  const auto mean = write<float>(desc, pointers, 4);
  const auto variance = write<float>(desc, pointers, 5);
  const auto width = static_cast<double>(x.dim(1));
  for (std::int64_t r = 0; r < x.dim(0); ++r) {
    double sum = 0, squares = 0;
    for (std::int64_t c = 0; c < x.dim(1); ++c) sum += static_cast<double>(x(r, c));
    const double middle = sum / width;
    for (std::int64_t c = 0; c < x.dim(1); ++c) {
      const double centred = static_cast<double>(x(r, c)) - middle;
      squares += centred * centred;
    }
    mean(r) = static_cast<float>(middle);
    variance(r) = static_cast<float>(squares / width);
    const double inverse = 1 / std::sqrt(squares / width + static_cast<double>(op.epsilon));
    for (std::int64_t c = 0; c < x.dim(1); ++c) {
      const double normal = (static_cast<double>(x(r, c)) - middle) * inverse;
      y(r, c) = static_cast<float>(normal * scale(c) + shift(c));
    }
  }
}

/// dx = inverse * (g - mean of g - normal * mean of g * normal) of each row, with g = dy * scale.
void run(const LayerNormBackward& op, const OpDesc& desc, Pointers pointers) {
  const auto x = read<float>(desc, pointers, 0);
  const auto dy = update<float>(desc, pointers, 1);
  const auto mean = read<float>(desc, pointers, 2);
  const auto variance = read<float>(desc, pointers, 3);
  const auto scale = read<float>(desc, pointers, 4);
  const auto dx = desc.in_place ? dy : write<float>(desc, pointers, 5);
  const std::size_t first = desc.in_place ? 5 : 6;
  const auto dscale = write<float>(desc, pointers, first);
  const auto dshift = write<float>(desc, pointers, first + 1);
  const auto inverse = [&](std::int64_t r) {
    return 1 / std::sqrt(static_cast<double>(variance(r)) + static_cast<double>(op.epsilon));
  };
  const auto normal = [&](std::int64_t r, std::int64_t c) {
    return (static_cast<double>(x(r, c)) - static_cast<double>(mean(r))) * inverse(r);
  };
  for (std::int64_t c = 0; c < x.dim(1); ++c) {
    double sum = 0, product = 0;
    for (std::int64_t r = 0; r < x.dim(0); ++r) {
      sum += static_cast<double>(dy(r, c));
      product += static_cast<double>(dy(r, c)) * normal(r, c);
    }
    dshift(c) = static_cast<float>(sum);
    dscale(c) = static_cast<float>(product);
  }
  const auto width = static_cast<double>(x.dim(1));
  for (std::int64_t r = 0; r < x.dim(0); ++r) {
    double sum = 0, product = 0;
    for (std::int64_t c = 0; c < x.dim(1); ++c) {
      const double g = static_cast<double>(dy(r, c)) * scale(c);
      sum += g;
      product += g * normal(r, c);
    }
    for (std::int64_t c = 0; c < x.dim(1); ++c) {
      const double g = static_cast<double>(dy(r, c)) * scale(c);
      dx(r, c) =
          static_cast<float>(inverse(r) * (g - sum / width - normal(r, c) * product / width));
    }
  }
}

}  // namespace tidepool::nn::reference
