#include <cassert>
#include <limits>

#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

/// Of equal values the first in the window wins; padding never does.
void run(const MaxPoolForward& op, const OpDesc& desc, Pointers pointers) {
  assert(op.window * op.window <= 256);
  const auto x = read<float>(desc, pointers, 0);
  const auto y = write<float>(desc, pointers, 1);
  const auto index = write<std::uint8_t>(desc, pointers, 2);
  for_each_element(y, [&](auto n, auto c, auto oh, auto ow) {
    float best = std::numeric_limits<float>::lowest();
    std::int64_t position = 0;
    for (std::int64_t kh = 0; kh < op.window; ++kh) {
      const std::int64_t ih = oh * op.stride - op.padding + kh;
      if (ih < 0 || ih >= x.dim(2)) continue;
      for (std::int64_t kw = 0; kw < op.window; ++kw) {
        const std::int64_t iw = ow * op.stride - op.padding + kw;
        if (iw < 0 || iw >= x.dim(3) || !(x(n, c, ih, iw) > best)) continue;
        best = x(n, c, ih, iw);
        position = kh * op.window + kw;
      }
    }
    y(n, c, oh, ow) = best;
    index(n, c, oh, ow) = static_cast<std::uint8_t>(position);
  });
}

void run(const MaxPoolBackward& op, const OpDesc& desc, Pointers pointers) {
  const auto dy = read<float>(desc, pointers, 0);
  const auto index = read<std::uint8_t>(desc, pointers, 1);
  const auto dx = write<float>(desc, pointers, 2);
  for_each_element(dy, [&](auto n, auto c, auto oh, auto ow) {
    const std::int64_t position = index(n, c, oh, ow);
    const std::int64_t ih = oh * op.stride - op.padding + position / op.window;
    const std::int64_t iw = ow * op.stride - op.padding + position % op.window;
    dx(n, c, ih, iw) += dy(n, c, oh, ow);
  });
}

void run(const AvgPoolForward& op, const OpDesc& desc, Pointers pointers) {
  assert(op.padding == 0);
  const auto x = read<float>(desc, pointers, 0);
  const auto y = write<float>(desc, pointers, 1);
  const auto area = static_cast<double>(op.window * op.window);
  for_each_element(y, [&](auto n, auto c, auto oh, auto ow) {
    double sum = 0;
    for (std::int64_t kh = 0; kh < op.window; ++kh) {
      for (std::int64_t kw = 0; kw < op.window; ++kw) {
        sum += x(n, c, oh * op.stride + kh, ow * op.stride + kw);
      }
    }
    y(n, c, oh, ow) = static_cast<float>(sum / area);
  });
}

void run(const AvgPoolBackward& op, const OpDesc& desc, Pointers pointers) {
  assert(op.padding == 0);
  const auto dy = read<float>(desc, pointers, 0);
  const auto dx = write<float>(desc, pointers, 1);
  const auto area = static_cast<float>(op.window * op.window);
  for_each_element(dy, [&](auto n, auto c, auto oh, auto ow) {
    for (std::int64_t kh = 0; kh < op.window; ++kh) {
      for (std::int64_t kw = 0; kw < op.window; ++kw) {
        dx(n, c, oh * op.stride + kh, ow * op.stride + kw) += dy(n, c, oh, ow) / area;
      }
    }
  });
}

}  // namespace tidepool::nn::reference
