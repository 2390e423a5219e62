#include <cmath>

#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {
namespace {

/// Calls `body(n, h, w)` for every element of one channel.
template <class T, class Body>
void for_each_in_channel(const TensorView<T>& view, Body body) {
  for (std::int64_t n = 0; n < view.dim(0); ++n) {
    for (std::int64_t h = 0; h < view.dim(2); ++h) {
      for (std::int64_t w = 0; w < view.dim(3); ++w) body(n, h, w);
    }
  }
}

template <class T>
double channel_size(const TensorView<T>& view) {
  return static_cast<double>(view.dim(0) * view.dim(2) * view.dim(3));
}

}  // namespace

void run(const BatchNormForward& op, const OpDesc& desc, Pointers pointers) {
  const auto x = read<float>(desc, pointers, 0);
  const auto scale = read<float>(desc, pointers, 1);
  const auto shift = read<float>(desc, pointers, 2);
  const auto y = write<float>(desc, pointers, 3);
  const auto mean = write<float>(desc, pointers, 4);
  const auto variance = write<float>(desc, pointers, 5);
  const double count = channel_size(x);
  for (std::int64_t c = 0; c < x.dim(1); ++c) {
    double sum = 0;
    for_each_in_channel(x, [&](auto n, auto h, auto w) { sum += x(n, c, h, w); });
    const double m = sum / count;
    double squares = 0;
    for_each_in_channel(
        x, [&](auto n, auto h, auto w) { squares += (x(n, c, h, w) - m) * (x(n, c, h, w) - m); });
    const double v = squares / count;
    const double factor = scale(c) / std::sqrt(v + op.epsilon);
    for_each_in_channel(x, [&](auto n, auto h, auto w) {
      y(n, c, h, w) = static_cast<float>((x(n, c, h, w) - m) * factor + shift(c));
    });
    mean(c) = static_cast<float>(m);
    variance(c) = static_cast<float>(v);
  }
}

void run(const BatchNormBackward& op, const OpDesc& desc, Pointers pointers) {
  const auto x = read<float>(desc, pointers, 0);
  const auto mean = read<float>(desc, pointers, 2);
  const auto variance = read<float>(desc, pointers, 3);
  const auto scale = read<float>(desc, pointers, 4);
  const std::size_t first_written = desc.in_place ? 5 : 6;
  // In place, dx(element) is written after the last read of dy(element).
  const auto dy = update<float>(desc, pointers, 1);
  const auto dx = desc.in_place ? dy : write<float>(desc, pointers, 5);
  const auto dscale = write<float>(desc, pointers, first_written);
  const auto dshift = write<float>(desc, pointers, first_written + 1);
  const double count = channel_size(x);
  for (std::int64_t c = 0; c < x.dim(1); ++c) {
    const double inverse = 1 / std::sqrt(static_cast<double>(variance(c)) + op.epsilon);
    const auto normalised = [&](auto n, auto h, auto w) {
      return (static_cast<double>(x(n, c, h, w)) - mean(c)) * inverse;
    };
    double sum = 0;
    double product = 0;
    for_each_in_channel(x, [&](auto n, auto h, auto w) {
      sum += dy(n, c, h, w);
      product += dy(n, c, h, w) * normalised(n, h, w);
    });
    for_each_in_channel(x, [&](auto n, auto h, auto w) {
      const double centred = dy(n, c, h, w) - sum / count - normalised(n, h, w) * product / count;
      dx(n, c, h, w) = static_cast<float>(scale(c) * inverse * centred);
    });
    dscale(c) = static_cast<float>(product);
    dshift(c) = static_cast<float>(sum);
  }
}

void run(const BatchNormInference& op, const OpDesc& desc, Pointers pointers) {
  const auto x = read<float>(desc, pointers, 0);
  const auto scale = read<float>(desc, pointers, 1);
  const auto shift = read<float>(desc, pointers, 2);
  const auto mean = read<float>(desc, pointers, 3);
  const auto variance = read<float>(desc, pointers, 4);
  const auto y = write<float>(desc, pointers, 5);
  for (std::int64_t c = 0; c < x.dim(1); ++c) {
    const double factor = scale(c) / std::sqrt(static_cast<double>(variance(c)) + op.epsilon);
    for_each_in_channel(x, [&](auto n, auto h, auto w) {
      const double centred = static_cast<double>(x(n, c, h, w)) - mean(c);
      y(n, c, h, w) = static_cast<float>(centred * factor + shift(c));
    });
  }
}

void run(const BatchNormStatistics& op, const OpDesc& desc, Pointers pointers) {
  const auto mean = read<float>(desc, pointers, 0);
  const auto variance = read<float>(desc, pointers, 1);
  const auto running_mean = update<float>(desc, pointers, 2);
  const auto running_variance = update<float>(desc, pointers, 3);
  const auto n = static_cast<float>(op.values);
  const float unbiased = op.values > 1 ? n / (n - 1) : 1.0F;
  const float m = op.momentum;
  for (std::int64_t c = 0; c < mean.dim(0); ++c) {
    running_mean(c) = (1 - m) * running_mean(c) + m * mean(c);
    running_variance(c) = (1 - m) * running_variance(c) + m * (variance(c) * unbiased);
  }
}

}  // namespace tidepool::nn::reference
