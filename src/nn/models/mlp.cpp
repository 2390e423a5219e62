#include "nn/models/mlp.h"

#include <fmt/format.h>

namespace tidepool::nn {
namespace {

Result<Graph> build(const ModelInfo& info, const ModelOptions& options, int layers,
                    std::int64_t width) {
  GraphBuilder b(info.name);
  ValueId x = b.images(options.image);
  const ValueId labels = b.labels();
  x = b.add("flatten", Flatten{}, {x});
  for (int i = 1; i <= layers; ++i) {
    x = b.add(fmt::format("fc{}", i), Linear{width}, {x});
    x = b.add(fmt::format("relu{}", i), Relu{}, {x});
  }
  x = b.add(fmt::format("fc{}", layers + 1), Linear{options.classes}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

Result<Graph> build_mlp(const ModelInfo& info, const ModelOptions& options) {
  return build(info, options, 2, 256);
}

/// Nearly all of its bytes are weights and what the optimizer keeps of them, in layers of a size.
Result<Graph> build_deep_mlp(const ModelInfo& info, const ModelOptions& options) {
  return build(info, options, 16, 1024);
}

}  // namespace

std::vector<ModelInfo> mlp_models() {
  return {{"mlp", "two hidden layers of 256 with ReLU", {3, 32, 32}, 10, build_mlp},
          {"mlp-deep", "sixteen hidden layers of 1024 with ReLU", {3, 32, 32}, 10, build_deep_mlp}};
}

}  // namespace tidepool::nn
