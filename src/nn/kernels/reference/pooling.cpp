#include <algorithm>
#include <cassert>
#include <limits>

#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {
namespace {

/// What a window has of an image.
struct Part {
  std::int64_t top, bottom, left, right;  ///< bottom and right are not in it

  [[nodiscard]] std::int64_t count() const { return (bottom - top) * (right - left); }
};

/// Of the window of output (oh, ow) over images of the size of `x`.
Part part_of(const Window& op, const TensorDesc& x, std::int64_t oh, std::int64_t ow) {
  const std::int64_t top = oh * op.stride - op.padding.height;
  const std::int64_t left = ow * op.stride - op.padding.width;
  return {std::max<std::int64_t>(top, 0), std::min(top + op.window.height, x.dims[2]),
          std::max<std::int64_t>(left, 0), std::min(left + op.window.width, x.dims[3])};
}

template <class Body>
void for_each_place(const Part& part, Body body) {
  for (std::int64_t h = part.top; h < part.bottom; ++h) {
    for (std::int64_t w = part.left; w < part.right; ++w) body(h, w);
  }
}

}  // namespace

/// Of equal values the first in the window wins; padding never does.
void run(const MaxPoolForward& op, const OpDesc& desc, Pointers pointers) {
  assert(op.window.area() <= 256);
  const auto x = read<float>(desc, pointers, 0);
  const auto y = write<float>(desc, pointers, 1);
  const auto index = write<std::uint8_t>(desc, pointers, 2);
  for_each_element(y, [&](auto n, auto c, auto oh, auto ow) {
    float best = std::numeric_limits<float>::lowest();
    std::int64_t position = 0;
    for_each_place(part_of(op, desc.operands[0], oh, ow), [&](auto ih, auto iw) {
      if (!(x(n, c, ih, iw) > best)) return;
      best = x(n, c, ih, iw);
      const std::int64_t kh = ih - oh * op.stride + op.padding.height;
      const std::int64_t kw = iw - ow * op.stride + op.padding.width;
      position = kh * op.window.width + kw;
    });
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
    const std::int64_t ih = oh * op.stride - op.padding.height + position / op.window.width;
    const std::int64_t iw = ow * op.stride - op.padding.width + position % op.window.width;
    dx(n, c, ih, iw) += dy(n, c, oh, ow);
  });
}

void run(const AvgPoolForward& op, const OpDesc& desc, Pointers pointers) {
  const auto x = read<float>(desc, pointers, 0);
  const auto y = write<float>(desc, pointers, 1);
  for_each_element(y, [&](auto n, auto c, auto oh, auto ow) {
    const Part part = part_of(op, desc.operands[0], oh, ow);
    double sum = 0;
    for_each_place(part, [&](auto ih, auto iw) { sum += x(n, c, ih, iw); });
    y(n, c, oh, ow) = static_cast<float>(sum / static_cast<double>(part.count()));
  });
}

void run(const AvgPoolBackward& op, const OpDesc& desc, Pointers pointers) {
  const auto dy = read<float>(desc, pointers, 0);
  const auto dx = write<float>(desc, pointers, 1);
  for_each_element(dy, [&](auto n, auto c, auto oh, auto ow) {
    const Part part = part_of(op, desc.operands[1], oh, ow);
    const float share = dy(n, c, oh, ow) / static_cast<float>(part.count());
    for_each_place(part, [&](auto ih, auto iw) { dx(n, c, ih, iw) += share; });
  });
}

}  // namespace tidepool::nn::reference
