#include <cassert>
#include <limits>

#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

/// Of equal values the first in the window wins; padding never does.
void max_pool_forward(const OpDesc& desc, Pointers pointers, std::byte*) {
  assert(desc.window * desc.window <= 256);
  const auto x = read<float>(desc, pointers, 0);
  const auto y = write<float>(desc, pointers, 1);
  const auto index = write<std::uint8_t>(desc, pointers, 2);
  for_each_element(y, [&](auto n, auto c, auto oh, auto ow) {
    float best = std::numeric_limits<float>::lowest();
    std::int64_t position = 0;
    for (std::int64_t kh = 0; kh < desc.window; ++kh) {
      const std::int64_t ih = oh * desc.stride - desc.padding + kh;
      if (ih < 0 || ih >= x.dim(2)) continue;
      for (std::int64_t kw = 0; kw < desc.window; ++kw) {
        const std::int64_t iw = ow * desc.stride - desc.padding + kw;
        if (iw < 0 || iw >= x.dim(3) || !(x(n, c, ih, iw) > best)) continue;
        best = x(n, c, ih, iw);
        position = kh * desc.window + kw;
      }
    }
    y(n, c, oh, ow) = best;
    index(n, c, oh, ow) = static_cast<std::uint8_t>(position);
  });
}

void max_pool_backward(const OpDesc& desc, Pointers pointers, std::byte*) {
  const auto dy = read<float>(desc, pointers, 0);
  const auto index = read<std::uint8_t>(desc, pointers, 1);
  const auto dx = write<float>(desc, pointers, 2);
  for_each_element(dy, [&](auto n, auto c, auto oh, auto ow) {
    const std::int64_t position = index(n, c, oh, ow);
    const std::int64_t ih = oh * desc.stride - desc.padding + position / desc.window;
    const std::int64_t iw = ow * desc.stride - desc.padding + position % desc.window;
    dx(n, c, ih, iw) += dy(n, c, oh, ow);
  });
}

void avg_pool_forward(const OpDesc& desc, Pointers pointers, std::byte*) {
  assert(desc.padding == 0);
  const auto x = read<float>(desc, pointers, 0);
  const auto y = write<float>(desc, pointers, 1);
  const auto area = static_cast<double>(desc.window * desc.window);
  for_each_element(y, [&](auto n, auto c, auto oh, auto ow) {
    double sum = 0;
    for (std::int64_t kh = 0; kh < desc.window; ++kh) {
      for (std::int64_t kw = 0; kw < desc.window; ++kw) {
        sum += x(n, c, oh * desc.stride + kh, ow * desc.stride + kw);
      }
    }
    y(n, c, oh, ow) = static_cast<float>(sum / area);
  });
}

void avg_pool_backward(const OpDesc& desc, Pointers pointers, std::byte*) {
  assert(desc.padding == 0);
  const auto dy = read<float>(desc, pointers, 0);
  const auto dx = write<float>(desc, pointers, 1);
  const auto area = static_cast<float>(desc.window * desc.window);
  for_each_element(dy, [&](auto n, auto c, auto oh, auto ow) {
    for (std::int64_t kh = 0; kh < desc.window; ++kh) {
      for (std::int64_t kw = 0; kw < desc.window; ++kw) {
        dx(n, c, oh * desc.stride + kh, ow * desc.stride + kw) += dy(n, c, oh, ow) / area;
      }
    }
  });
}

}  // namespace tidepool::nn::reference
