#include "nn/models/resnet.h"

#include <fmt/format.h>

#include "nn/models/conv_norm.h"

namespace tidepool::nn {
namespace {

struct Stage {
  std::int64_t width = 0;
  std::int64_t stride = 1;  ///< of the first block
  int blocks = 0;
};

/// `prefix` ends in a dot. The shape changes where `project` says so.
ValueId add_block(GraphBuilder& b, const std::string& prefix, std::int64_t width,
                  std::int64_t stride, int convolutions, bool project, ValueId x) {
  ValueId y = x;
  for (int i = 1; i <= convolutions; ++i) {
    const std::string number = std::to_string(i);
    const Conv2d spec{.channels = width, .stride = i == 1 ? stride : 1};
    y = conv_norm(b, prefix, number, spec, y);
    if (i < convolutions) y = b.add(prefix + "relu" + number, Relu{}, {y});
  }
  if (project) {
    const Conv2d spec{.channels = width, .window = 1, .stride = stride, .padding = 0};
    x = conv_norm(b, prefix + "shortcut_", "", spec, x);
  }
  return b.add(prefix + "add", Add{}, {y, x});
}

Result<Graph> build(const ModelInfo& info, const ModelOptions& options,
                    const std::vector<Stage>& stages, int convolutions, std::int64_t pool) {
  GraphBuilder b(info.name);
  ValueId x = b.images(options.image);
  const ValueId labels = b.labels();
  std::int64_t width = stages.front().width;
  x = conv_norm(b, "stem_", "", Conv2d{.channels = width}, x);
  x = b.add("stem_relu", Relu{}, {x});
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Stage& stage = stages[s];
    for (int i = 1; i <= stage.blocks; ++i) {
      const std::int64_t stride = i == 1 ? stage.stride : 1;
      const bool project = stride != 1 || stage.width != width;
      x = add_block(b, fmt::format("block{}_{}.", s + 1, i), stage.width, stride, convolutions,
                    project, x);
      width = stage.width;
    }
  }
  x = b.add("pool", AvgPool{pool, pool}, {x});
  x = b.add("flatten", Flatten{}, {x});
  x = b.add("fc", Linear{options.classes}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

template <int kBlocks1, int kBlocks2, int kBlocks3, int kBlocks4, int kConvolutions>
Result<Graph> build_cifar(const ModelInfo& info, const ModelOptions& options) {
  return build(info, options,
               {{64, 1, kBlocks1}, {128, 1, kBlocks2}, {256, 2, kBlocks3}, {512, 2, kBlocks4}},
               kConvolutions, 8);
}

Result<Graph> build_tiny(const ModelInfo& info, const ModelOptions& options) {
  return build(info, options, {{16, 1, 1}, {32, 2, 1}}, 2, 4);
}

}  // namespace

std::vector<ModelInfo> resnet_models() {
  const ImageShape cifar{3, 32, 32};
  const auto model = [&](int depth, auto builder) {
    return ModelInfo{fmt::format("resnet{}-cifar", depth),
                     fmt::format("ResNet-{} for small images, as in the SmartPool paper", depth),
                     cifar, 10, builder};
  };
  return {
      model(18, build_cifar<2, 2, 2, 2, 2>),
      model(34, build_cifar<3, 4, 6, 3, 2>),
      model(50, build_cifar<3, 4, 6, 3, 3>),
      model(101, build_cifar<3, 4, 23, 3, 3>),
      {"tiny-resnet",
       "a residual block of width 16 and one of width 32, for trials",
       {3, 8, 8},
       10,
       build_tiny},
  };
}

}  // namespace tidepool::nn
