#include "nn/models/mlp.h"

#include <fmt/format.h>

namespace tidepool::nn {
namespace {

Result<Graph> build_mlp(const ModelInfo& info, const ModelOptions& options) {
  GraphBuilder b(info.name);
  ValueId x = b.images(options.image);
  const ValueId labels = b.labels();
  x = b.add("flatten", Flatten{}, {x});
  for (const int i : {1, 2}) {
    x = b.add(fmt::format("fc{}", i), Linear{256}, {x});
    x = b.add(fmt::format("relu{}", i), Relu{}, {x});
  }
  x = b.add("fc3", Linear{options.classes}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

}  // namespace

std::vector<ModelInfo> mlp_models() {
  return {{"mlp", "two hidden layers of 256 with ReLU", {3, 32, 32}, 10, build_mlp}};
}

}  // namespace tidepool::nn
