#include "nn/kernels/preset/convolution_algorithms.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace tidepool::nn {
namespace {

constexpr Bytes kFloat = 4;
constexpr Bytes kComplex = 8;

/// A convolution whatever its direction.
struct ConvolutionShape {
  Window window;
  const TensorDesc& x;
  const TensorDesc& weight;
  const TensorDesc& y;
  const TensorDesc& tiled;  ///< what Winograd's tiles cover

  [[nodiscard]] Bytes samples() const { return x.dims[0]; }
  [[nodiscard]] Bytes inputs() const { return x.dims[1]; }
  [[nodiscard]] Bytes outputs() const { return y.dims[1]; }
  [[nodiscard]] Bytes positions() const { return y.dims[2] * y.dims[3]; }  ///< of an image
  [[nodiscard]] bool grouped() const { return convolution_groups(x, weight) > 1; }
  [[nodiscard]] bool pointwise() const { return window.window.area() == 1; }
};

std::optional<ConvolutionShape> convolution_shape(const OpDesc& desc) {
  const auto& o = desc.operands;
  if (const auto* op = desc.find<ConvForward>())
    return ConvolutionShape{*op, o[0], o[1], o[2], o[2]};
  if (const auto* op = desc.find<ConvBackwardData>()) {
    return ConvolutionShape{*op, o[2], o[1], o[0], o[2]};
  }
  if (const auto* op = desc.find<ConvBackwardWeights>()) {
    return ConvolutionShape{*op, o[0], o[2], o[1], o[1]};
  }
  return std::nullopt;
}

Bytes offsets(const ConvolutionShape& s) {
  return kFloat * (s.weight.dims[1] * s.window.window.area() + s.positions());
}

std::optional<Bytes> unfolded(const ConvolutionShape& s) {
  if (s.grouped() || (s.pointwise() && s.window.stride == 1)) return std::nullopt;
  return kFloat * s.inputs() * s.window.window.area() * s.samples() * s.positions();
}

std::optional<Bytes> winograd(const ConvolutionShape& s) {
  constexpr std::int64_t kTile = 8;
  const Size2d& side = s.window.window;
  if (s.grouped() || s.window.stride != 1 || (side != Size2d(3) && side != Size2d(5))) {
    return std::nullopt;
  }
  const std::int64_t made = kTile - side.height + 1;  // values of a row that a tile gives
  const auto tiles_of = [&](std::int64_t length) { return (length + made - 1) / made; };
  const Bytes tiles = s.samples() * tiles_of(s.tiled.dims[2]) * tiles_of(s.tiled.dims[3]);
  return kTile * kTile * kFloat * (s.inputs() * s.outputs() + tiles * (s.inputs() + s.outputs()));
}

std::optional<Bytes> fourier(const ConvolutionShape& s) {
  constexpr std::int64_t kMostSide = 256;
  const Window& w = s.window;
  const std::int64_t height = s.x.dims[2] + 2 * w.padding.height;
  const std::int64_t width = s.x.dims[3] + 2 * w.padding.width;
  const bool window_fits = w.window.height > w.padding.height && w.window.width > w.padding.width;
  if (s.grouped() || w.stride != 1 || s.pointwise() || !window_fits ||
      std::max(height, width) > kMostSide) {
    return std::nullopt;
  }
  const auto power = [](std::int64_t length) {
    return static_cast<Bytes>(std::bit_ceil(static_cast<std::uint64_t>(length)));
  };
  const Bytes frequencies = power(height) * (power(width) / 2 + 1);
  return kComplex * frequencies *
         (s.samples() * (s.inputs() + s.outputs()) + s.inputs() * s.outputs());
}

}  // namespace

std::vector<KernelAlgorithm> convolution_algorithms(const OpDesc& desc) {
  const auto shape = convolution_shape(desc);
  if (!shape) return {};
  std::vector<KernelAlgorithm> list{{"implicit-gemm"}};
  const auto add = [&](const char* name, std::optional<Bytes> workspace) {
    if (workspace && *workspace <= kMostTensorBytes) list.push_back({name, *workspace});
  };
  add("implicit-precomp-gemm", offsets(*shape));
  add("gemm", unfolded(*shape));
  add("winograd", winograd(*shape));
  add("fft", fourier(*shape));
  std::ranges::stable_sort(list, {}, &KernelAlgorithm::workspace);
  return list;
}

}  // namespace tidepool::nn
