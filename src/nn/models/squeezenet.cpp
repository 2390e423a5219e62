#include "nn/models/squeezenet.h"

#include <fmt/format.h>

namespace tidepool::nn {
namespace {

struct Fire {
  std::int64_t squeeze = 0;
  std::int64_t expand = 0;  ///< of each of the two
  bool pool_before = false;
};

ValueId conv_relu(GraphBuilder& b, const std::string& name, std::int64_t channels,
                  std::int64_t window, ValueId x) {
  const Conv2d spec{.channels = channels, .window = window, .padding = window / 2, .bias = true};
  x = b.add(name, spec, {x});
  return b.add(name + "_relu", Relu{}, {x});
}

ValueId add_fire(GraphBuilder& b, const std::string& name, const Fire& fire, ValueId x) {
  x = conv_relu(b, name + ".squeeze", fire.squeeze, 1, x);
  const ValueId narrow = conv_relu(b, name + ".expand1x1", fire.expand, 1, x);
  const ValueId wide = conv_relu(b, name + ".expand3x3", fire.expand, 3, x);
  return b.add(name + ".concat", Concat{}, {narrow, wide});
}

Result<Graph> build_squeezenet(const ModelInfo& info, const ModelOptions& options,
                               std::int64_t stem, const std::vector<Fire>& fires) {
  GraphBuilder b(info.name);
  ValueId x = b.images(options.image);
  const ValueId labels = b.labels();
  x = conv_relu(b, "conv1", stem, 3, x);
  int number = 1;
  for (const Fire& fire : fires) {
    ++number;
    if (fire.pool_before) x = b.add(fmt::format("pool{}", number), MaxPool{3, 2, 1}, {x});
    x = add_fire(b, fmt::format("fire{}", number), fire, x);
  }
  x = b.add("drop", Dropout{0.5F}, {x});
  x = conv_relu(b, fmt::format("conv{}", number + 1), options.classes, 1, x);
  x = b.add("pool", GlobalAvgPool{}, {x});
  x = b.add("flatten", Flatten{}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

Result<Graph> build_squeezenet11(const ModelInfo& info, const ModelOptions& options) {
  return build_squeezenet(info, options, 64,
                          {{16, 64, true},
                           {16, 64},
                           {32, 128, true},
                           {32, 128},
                           {48, 192, true},
                           {48, 192},
                           {64, 256},
                           {64, 256}});
}

Result<Graph> build_tiny_squeezenet(const ModelInfo& info, const ModelOptions& options) {
  return build_squeezenet(info, options, 16, {{8, 12, true}, {12, 24}});
}

}  // namespace

std::vector<ModelInfo> squeezenet_models() {
  return {
      {"squeezenet", "SqueezeNet 1.1, CIFAR form", {3, 32, 32}, 10, build_squeezenet11},
      {"tiny-squeezenet", "two fire modules, for trials", {3, 8, 8}, 10, build_tiny_squeezenet},
  };
}

}  // namespace tidepool::nn
