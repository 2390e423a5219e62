#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {
namespace {

/// Calls `body(kh, kw, ih, iw)` for each filter position over output (oh, ow) that meets the input
/// and not its padding.
template <class Body>
void for_each_tap(const Window& op, const TensorDesc& x, std::int64_t oh, std::int64_t ow,
                  Body body) {
  for (std::int64_t kh = 0; kh < op.window.height; ++kh) {
    const std::int64_t ih = oh * op.stride - op.padding.height + kh;
    if (ih < 0 || ih >= x.dims[2]) continue;
    for (std::int64_t kw = 0; kw < op.window.width; ++kw) {
      const std::int64_t iw = ow * op.stride - op.padding.width + kw;
      if (iw >= 0 && iw < x.dims[3]) body(kh, kw, ih, iw);
    }
  }
}

/// Channels and filters of a group.
struct Groups {
  std::int64_t channels, filters;

  Groups(const TensorDesc& x, const TensorDesc& weight)
      : channels(weight.dims[1]), filters(weight.dims[0] / convolution_groups(x, weight)) {}
  [[nodiscard]] std::int64_t first_channel(std::int64_t filter) const {
    return filter / filters * channels;
  }
  [[nodiscard]] std::int64_t first_filter(std::int64_t channel) const {
    return channel / channels * filters;
  }
};

}  // namespace

void run(const ConvForward& op, const OpDesc& desc, Pointers pointers) {
  const auto x = read<float>(desc, pointers, 0);
  const auto weight = read<float>(desc, pointers, 1);
  const auto y = write<float>(desc, pointers, 2);
  const Groups groups(desc.operands[0], desc.operands[1]);
  for_each_element(y, [&](auto n, auto o, auto oh, auto ow) {
    const std::int64_t first = groups.first_channel(o);
    double sum = 0;
    for_each_tap(op, desc.operands[0], oh, ow, [&](auto kh, auto kw, auto ih, auto iw) {
      for (std::int64_t i = 0; i < groups.channels; ++i) {
        sum += static_cast<double>(x(n, first + i, ih, iw)) * weight(o, i, kh, kw);
      }
    });
    y(n, o, oh, ow) = static_cast<float>(sum);
  });
}

void run(const ConvBackwardData& op, const OpDesc& desc, Pointers pointers) {
  const auto dy = read<float>(desc, pointers, 0);
  const auto weight = read<float>(desc, pointers, 1);
  const auto dx = write<float>(desc, pointers, 2);
  const Groups groups(desc.operands[2], desc.operands[1]);
  for_each_element(dx, [&](auto n, auto i, auto ih, auto iw) {
    const std::int64_t first = groups.first_filter(i);
    double sum = 0;
    for (std::int64_t kh = 0; kh < op.window.height; ++kh) {
      const std::int64_t h = ih + op.padding.height - kh;
      if (h < 0 || h % op.stride != 0 || h / op.stride >= dy.dim(2)) continue;
      for (std::int64_t kw = 0; kw < op.window.width; ++kw) {
        const std::int64_t w = iw + op.padding.width - kw;
        if (w < 0 || w % op.stride != 0 || w / op.stride >= dy.dim(3)) continue;
        for (std::int64_t o = first; o < first + groups.filters; ++o) {
          sum += static_cast<double>(dy(n, o, h / op.stride, w / op.stride)) *
                 weight(o, i % groups.channels, kh, kw);
        }
      }
    }
    dx(n, i, ih, iw) = static_cast<float>(sum);
  });
}

void run(const ConvBackwardWeights& op, const OpDesc& desc, Pointers pointers) {
  const auto x = read<float>(desc, pointers, 0);
  const auto dy = read<float>(desc, pointers, 1);
  const auto dweight = write<float>(desc, pointers, 2);
  const Groups groups(desc.operands[0], desc.operands[2]);
  for_each_element(dweight, [&](auto o, auto i, auto kh, auto kw) {
    const std::int64_t channel = groups.first_channel(o) + i;
    double sum = 0;
    for (std::int64_t oh = 0; oh < dy.dim(2); ++oh) {
      const std::int64_t ih = oh * op.stride - op.padding.height + kh;
      if (ih < 0 || ih >= x.dim(2)) continue;
      for (std::int64_t ow = 0; ow < dy.dim(3); ++ow) {
        const std::int64_t iw = ow * op.stride - op.padding.width + kw;
        if (iw < 0 || iw >= x.dim(3)) continue;
        for (std::int64_t n = 0; n < dy.dim(0); ++n) {
          sum += static_cast<double>(x(n, channel, ih, iw)) * dy(n, o, oh, ow);
        }
      }
    }
    dweight(o, i, kh, kw) = static_cast<float>(sum);
  });
}

}  // namespace tidepool::nn::reference
