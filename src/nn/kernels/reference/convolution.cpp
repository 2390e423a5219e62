#include <algorithm>
#include <vector>

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

/// Of a convolution whose channels are in groups.
struct Groups {
  std::int64_t count, channels, filters;  ///< of each

  Groups(const TensorDesc& x, const TensorDesc& weight)
      : count(convolution_groups(x, weight)),
        channels(weight.dims[1]),
        filters(weight.dims[0] / count) {}
};

/// Elements of one place in a row, all of whose sums grow side by side: each adds its own terms in
/// their order.
class Rows {
 public:
  explicit Rows(std::int64_t width) : width_(width) {}
  void push(float element) { elements_.push_back(element); }
  /// Adds a multiple of what lies in a row from `first` on.
  void add(std::vector<double>& sums, double value, std::int64_t row, std::int64_t first) const {
    const double* term = elements_.data() + row * width_ + first;
    for (double& sum : sums) sum += value * *term++;
  }

 private:
  std::int64_t width_;
  std::vector<double> elements_;
};

std::vector<double> sums_of(std::int64_t count) {
  return std::vector<double>(static_cast<std::size_t>(count));
}

}  // namespace

void run(const ConvForward& op, const OpDesc& desc, Pointers pointers) {
  const auto x = read<float>(desc, pointers, 0);
  const auto weight = read<float>(desc, pointers, 1);
  const auto y = write<float>(desc, pointers, 2);
  const Groups groups(desc.operands[0], desc.operands[1]);
  Rows filters(weight.dim(0));
  for (std::int64_t kh = 0; kh < op.window.height; ++kh) {
    for (std::int64_t kw = 0; kw < op.window.width; ++kw) {
      for (std::int64_t i = 0; i < groups.channels; ++i) {
        for (std::int64_t o = 0; o < weight.dim(0); ++o) filters.push(weight(o, i, kh, kw));
      }
    }
  }
  std::vector<double> sums = sums_of(groups.filters);
  for (std::int64_t n = 0; n < y.dim(0); ++n) {
    for (std::int64_t g = 0; g < groups.count; ++g) {
      for (std::int64_t oh = 0; oh < y.dim(2); ++oh) {
        for (std::int64_t ow = 0; ow < y.dim(3); ++ow) {
          std::ranges::fill(sums, 0);
          for_each_tap(op, desc.operands[0], oh, ow, [&](auto kh, auto kw, auto ih, auto iw) {
            const std::int64_t row = (kh * op.window.width + kw) * groups.channels;
            for (std::int64_t i = 0; i < groups.channels; ++i) {
              filters.add(sums, x(n, g * groups.channels + i, ih, iw), row + i, g * groups.filters);
            }
          });
          for (std::int64_t o = 0; o < groups.filters; ++o) {
            y(n, g * groups.filters + o, oh, ow) =
                static_cast<float>(sums[static_cast<std::size_t>(o)]);
          }
        }
      }
    }
  }
}

void run(const ConvBackwardData& op, const OpDesc& desc, Pointers pointers) {
  const auto dy = read<float>(desc, pointers, 0);
  const auto weight = read<float>(desc, pointers, 1);
  const auto dx = write<float>(desc, pointers, 2);
  const Groups groups(desc.operands[2], desc.operands[1]);
  Rows channels(groups.channels);
  for (std::int64_t kh = 0; kh < op.window.height; ++kh) {
    for (std::int64_t kw = 0; kw < op.window.width; ++kw) {
      for (std::int64_t o = 0; o < weight.dim(0); ++o) {
        for (std::int64_t i = 0; i < groups.channels; ++i) channels.push(weight(o, i, kh, kw));
      }
    }
  }
  std::vector<double> sums = sums_of(groups.channels);
  const auto sum_up = [&](auto n, auto g, auto ih, auto iw) {
    std::ranges::fill(sums, 0);
    for (std::int64_t kh = 0; kh < op.window.height; ++kh) {
      const std::int64_t h = ih + op.padding.height - kh;
      if (h < 0 || h % op.stride != 0 || h / op.stride >= dy.dim(2)) continue;
      for (std::int64_t kw = 0; kw < op.window.width; ++kw) {
        const std::int64_t w = iw + op.padding.width - kw;
        if (w < 0 || w % op.stride != 0 || w / op.stride >= dy.dim(3)) continue;
        const std::int64_t row = (kh * op.window.width + kw) * weight.dim(0);
        for (std::int64_t o = g * groups.filters; o < (g + 1) * groups.filters; ++o) {
          channels.add(sums, dy(n, o, h / op.stride, w / op.stride), row + o, 0);
        }
      }
    }
  };
  for (std::int64_t n = 0; n < dx.dim(0); ++n) {
    for (std::int64_t g = 0; g < groups.count; ++g) {
      for (std::int64_t ih = 0; ih < dx.dim(2); ++ih) {
        for (std::int64_t iw = 0; iw < dx.dim(3); ++iw) {
          sum_up(n, g, ih, iw);
          for (std::int64_t i = 0; i < groups.channels; ++i) {
            dx(n, g * groups.channels + i, ih, iw) =
                static_cast<float>(sums[static_cast<std::size_t>(i)]);
          }
        }
      }
    }
  }
}

void run(const ConvBackwardWeights& op, const OpDesc& desc, Pointers pointers) {
  const auto x = read<float>(desc, pointers, 0);
  const auto dy = read<float>(desc, pointers, 1);
  const auto dweight = write<float>(desc, pointers, 2);
  const Groups groups(desc.operands[0], desc.operands[2]);
  Rows filters(dy.dim(1));
  for (std::int64_t oh = 0; oh < dy.dim(2); ++oh) {
    for (std::int64_t ow = 0; ow < dy.dim(3); ++ow) {
      for (std::int64_t n = 0; n < dy.dim(0); ++n) {
        for (std::int64_t o = 0; o < dy.dim(1); ++o) filters.push(dy(n, o, oh, ow));
      }
    }
  }
  std::vector<double> sums = sums_of(groups.filters);
  const auto sum_up = [&](auto g, auto channel, auto kh, auto kw) {
    std::ranges::fill(sums, 0);
    for (std::int64_t oh = 0; oh < dy.dim(2); ++oh) {
      const std::int64_t ih = oh * op.stride - op.padding.height + kh;
      if (ih < 0 || ih >= x.dim(2)) continue;
      for (std::int64_t ow = 0; ow < dy.dim(3); ++ow) {
        const std::int64_t iw = ow * op.stride - op.padding.width + kw;
        if (iw < 0 || iw >= x.dim(3)) continue;
        const std::int64_t row = (oh * dy.dim(3) + ow) * dy.dim(0);
        for (std::int64_t n = 0; n < dy.dim(0); ++n) {
          filters.add(sums, x(n, channel, ih, iw), row + n, g * groups.filters);
        }
      }
    }
  };
  for (std::int64_t g = 0; g < groups.count; ++g) {
    for (std::int64_t i = 0; i < groups.channels; ++i) {
      for (std::int64_t kh = 0; kh < op.window.height; ++kh) {
        for (std::int64_t kw = 0; kw < op.window.width; ++kw) {
          sum_up(g, g * groups.channels + i, kh, kw);
          for (std::int64_t o = 0; o < groups.filters; ++o) {
            dweight(g * groups.filters + o, i, kh, kw) =
                static_cast<float>(sums[static_cast<std::size_t>(o)]);
          }
        }
      }
    }
  }
}

}  // namespace tidepool::nn::reference
