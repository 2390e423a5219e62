#include "nn/models/standard_resnet.h"

#include <fmt/format.h>

#include <array>

namespace tidepool::nn {
namespace {

struct ResidualBlock {
  std::int64_t width = 0;
  std::int64_t stride = 1;
  bool bottleneck = false;

  [[nodiscard]] std::int64_t filters() const { return bottleneck ? 4 * width : width; }
  [[nodiscard]] std::vector<Conv2d> convolutions() const {
    const Conv2d wide{.channels = width, .stride = stride};
    if (!bottleneck) return {wide, Conv2d{.channels = width}};
    return {Conv2d{.channels = width, .window = 1, .padding = 0}, wide,
            Conv2d{.channels = filters(), .window = 1, .padding = 0}};
  }
};

ValueId convolution_norm(GraphBuilder& b, const std::string& prefix, const std::string& suffix,
                         const Conv2d& spec, ValueId x) {
  x = b.add(prefix + "conv" + suffix, spec, {x});
  return b.add(prefix + "bn" + suffix, BatchNorm{}, {x});
}

/// `prefix` ends in a dot.
ValueId add_residual(GraphBuilder& b, const std::string& prefix, const ResidualBlock& block,
                     bool project, ValueId x) {
  const std::vector<Conv2d> convolutions = block.convolutions();
  ValueId y = x;
  for (std::size_t i = 0; i < convolutions.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    y = convolution_norm(b, prefix, number, convolutions[i], y);
    if (i + 1 < convolutions.size())
      y = b.add(fmt::format("{}relu{}", prefix, number), Relu{}, {y});
  }
  if (project) {
    const Conv2d spec{
        .channels = block.filters(), .window = 1, .stride = block.stride, .padding = 0};
    x = convolution_norm(b, prefix + "shortcut_", "", spec, x);
  }
  y = b.add(prefix + "add", Add{}, {y, x});
  return b.add(prefix + "relu", Relu{}, {y});
}

ValueId add_stem(GraphBuilder& b, bool small_images, ValueId x) {
  constexpr Conv2d kSmall{.channels = 64};
  constexpr Conv2d kLarge{.channels = 64, .window = 7, .stride = 2, .padding = 3};
  x = convolution_norm(b, "stem_", "", small_images ? kSmall : kLarge, x);
  x = b.add("stem_relu", Relu{}, {x});
  return small_images ? x : b.add("stem_pool", MaxPool{3, 2, 1}, {x});
}

Result<Graph> build_residual(const ModelInfo& info, const ModelOptions& options, bool small_images,
                             bool bottleneck, const std::array<int, 4>& blocks) {
  GraphBuilder b(info.name);
  ValueId x = b.images(options.image);
  const ValueId labels = b.labels();
  x = add_stem(b, small_images, x);
  std::int64_t channels = 64;
  ResidualBlock block{64, 1, bottleneck};
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    for (int i = 1; i <= blocks[stage]; ++i) {
      block.stride = i == 1 && stage > 0 ? 2 : 1;
      const bool project = block.stride != 1 || block.filters() != channels;
      x = add_residual(b, fmt::format("block{}_{}.", stage + 1, i), block, project, x);
      channels = block.filters();
    }
    block.width *= 2;
  }
  x = b.add("pool", GlobalAvgPool{}, {x});
  x = b.add("flatten", Flatten{}, {x});
  x = b.add("fc", Linear{options.classes}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

template <bool kBottleneck, int kBlocks1, int kBlocks2, int kBlocks3, int kBlocks4>
Result<Graph> build_imagenet(const ModelInfo& info, const ModelOptions& options) {
  return build_residual(info, options, false, kBottleneck,
                        {kBlocks1, kBlocks2, kBlocks3, kBlocks4});
}

Result<Graph> build_home(const ModelInfo& info, const ModelOptions& options) {
  return build_residual(info, options, true, false, {2, 2, 2, 2});
}

}  // namespace

std::vector<ModelInfo> standard_resnet_models() {
  const auto model = [](int depth, auto builder) {
    return ModelInfo{fmt::format("resnet{}", depth),
                     fmt::format("ResNet-{} for ImageNet", depth),
                     {3, 224, 224},
                     1000,
                     builder};
  };
  return {
      model(18, build_imagenet<false, 2, 2, 2, 2>),
      model(34, build_imagenet<false, 3, 4, 6, 3>),
      model(50, build_imagenet<true, 3, 4, 6, 3>),
      model(101, build_imagenet<true, 3, 4, 23, 3>),
      model(152, build_imagenet<true, 3, 8, 36, 3>),
      {"resnet18-home",
       "ResNet-18 for small images, as HOME is measured on",
       {3, 32, 32},
       10,
       build_home},
  };
}

}  // namespace tidepool::nn
