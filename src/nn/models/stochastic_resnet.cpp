#include "nn/models/stochastic_resnet.h"

#include <fmt/format.h>

#include "nn/models/conv_norm.h"
#include "nn/stochastic_depth.h"

namespace tidepool::nn {
namespace {

struct StochasticStage {
  std::int64_t width = 0;
  std::int64_t stride = 1;  ///< of the first block
  int blocks = 0;
};

/// `block` ends in a dot. The shape changes where `project` says so.
ValueId add_stochastic_block(GraphBuilder& b, const std::string& block, double survival,
                             std::int64_t width, std::int64_t stride, bool project, ValueId x) {
  b.begin_branch(survival);
  ValueId y = conv_norm(b, block, "1", Conv2d{.channels = width, .stride = stride}, x);
  y = b.add(block + "relu1", Relu{}, {y});
  y = conv_norm(b, block, "2", Conv2d{.channels = width}, y);
  b.end_branch();
  if (project) {
    const Conv2d spec{.channels = width, .window = 1, .stride = stride, .padding = 0};
    x = conv_norm(b, block + "shortcut_", "", spec, x);
  }
  x = b.add(block + "add", AddBranch{}, {x, y});
  return b.add(block + "relu2", Relu{}, {x});
}

Result<Graph> build_stochastic(const ModelInfo& info, const ModelOptions& options,
                               const std::vector<StochasticStage>& stages) {
  GraphBuilder b(info.name);
  ValueId x = b.images(options.image);
  const ValueId labels = b.labels();
  std::int64_t width = stages.front().width;
  x = conv_norm(b, "stem_", "", Conv2d{.channels = width}, x);
  x = b.add("stem_relu", Relu{}, {x});
  int blocks = 0, block = 0;
  for (const StochasticStage& stage : stages) blocks += stage.blocks;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (int i = 1; i <= stages[s].blocks; ++i) {
      const std::int64_t stride = i == 1 ? stages[s].stride : 1;
      const bool project = stride != 1 || stages[s].width != width;
      x = add_stochastic_block(b, fmt::format("block{}_{}.", s + 1, i),
                               survival_probability(++block, blocks), stages[s].width, stride,
                               project, x);
      width = stages[s].width;
    }
  }
  x = b.add("pool", GlobalAvgPool{}, {x});
  x = b.add("flatten", Flatten{}, {x});
  x = b.add("fc", Linear{options.classes}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

template <int kBlocks>
Result<Graph> build_three_stages(const ModelInfo& info, const ModelOptions& options) {
  return build_stochastic(info, options, {{16, 1, kBlocks}, {32, 2, kBlocks}, {64, 2, kBlocks}});
}

Result<Graph> build_tiny_stochastic(const ModelInfo& info, const ModelOptions& options) {
  return build_stochastic(info, options, {{16, 1, 1}, {32, 2, 2}});
}

}  // namespace

std::vector<ModelInfo> stochastic_resnet_models() {
  const ImageShape cifar{3, 32, 32};
  const auto model = [&](int depth, auto builder) {
    return ModelInfo{
        fmt::format("resnet{}-sd", depth),
        fmt::format("ResNet-{} for small images with stochastic depth, Huang et al. 2016", depth),
        cifar, 10, builder};
  };
  return {
      model(32, build_three_stages<5>),
      model(62, build_three_stages<10>),
      {"tiny-resnet-sd",
       "stochastic depth: three residual branches of width 16 and 32, for trials",
       {3, 8, 8},
       10,
       build_tiny_stochastic},
  };
}

}  // namespace tidepool::nn
