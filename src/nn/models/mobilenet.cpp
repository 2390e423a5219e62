#include "nn/models/mobilenet.h"

#include <fmt/format.h>

namespace tidepool::nn {
namespace {

struct SeparableBlock {
  std::int64_t width = 0;
  std::int64_t stride = 1;
};

ValueId conv_norm_relu(GraphBuilder& b, const std::string& prefix, const Conv2d& spec, ValueId x) {
  x = b.add(prefix + "_conv", spec, {x});
  x = b.add(prefix + "_bn", BatchNorm{}, {x});
  return b.add(prefix + "_relu", Relu{}, {x});
}

Result<Graph> build_mobilenet(const ModelInfo& info, const ModelOptions& options,
                              std::int64_t width, const std::vector<SeparableBlock>& blocks) {
  GraphBuilder b(info.name);
  ValueId x = b.images(options.image);
  const ValueId labels = b.labels();
  x = conv_norm_relu(b, "stem", Conv2d{.channels = width}, x);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto& [filters, stride] = blocks[i];
    x = conv_norm_relu(b, fmt::format("depthwise{}", i + 1),
                       Conv2d{.channels = width, .stride = stride, .groups = width}, x);
    x = conv_norm_relu(b, fmt::format("pointwise{}", i + 1),
                       Conv2d{.channels = filters, .window = 1, .padding = 0}, x);
    width = filters;
  }
  x = b.add("pool", GlobalAvgPool{}, {x});
  x = b.add("flatten", Flatten{}, {x});
  x = b.add("fc", Linear{options.classes}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

Result<Graph> build_full_mobilenet(const ModelInfo& info, const ModelOptions& options) {
  return build_mobilenet(info, options, 32,
                         {{64},
                          {128, 2},
                          {128},
                          {256, 2},
                          {256},
                          {512, 2},
                          {512},
                          {512},
                          {512},
                          {512},
                          {512},
                          {1024, 2},
                          {1024}});
}

Result<Graph> build_tiny_mobilenet(const ModelInfo& info, const ModelOptions& options) {
  return build_mobilenet(info, options, 16, {{24}, {40, 2}});
}

}  // namespace

std::vector<ModelInfo> mobilenet_models() {
  return {
      {"mobilenet", "MobileNetV1, CIFAR form", {3, 32, 32}, 10, build_full_mobilenet},
      {"tiny-mobilenet",
       "two separable convolutions of widths 24 and 40, for trials",
       {3, 8, 8},
       10,
       build_tiny_mobilenet},
  };
}

}  // namespace tidepool::nn
