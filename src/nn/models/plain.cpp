#include "nn/models/plain.h"

#include <fmt/format.h>

namespace tidepool::nn {
namespace {

struct PlainStage {
  std::int64_t width = 0;
  int convolutions = 0;
};

Result<Graph> build_plain20(const ModelInfo& info, const ModelOptions& options) {
  constexpr PlainStage kStages[] = {{64, 7}, {128, 7}, {256, 6}};
  GraphBuilder b(info.name);
  ValueId x = b.images(options.image);
  const ValueId labels = b.labels();
  int number = 0;
  for (const auto& [width, convolutions] : kStages) {
    for (int i = 0; i < convolutions; ++i) {
      const std::string suffix = std::to_string(++number);
      const std::int64_t stride = i == 0 && number > 1 ? 2 : 1;
      x = b.add("conv" + suffix, Conv2d{.channels = width, .stride = stride}, {x});
      x = b.add("bn" + suffix, BatchNorm{}, {x});
      x = b.add("relu" + suffix, Relu{}, {x});
    }
  }
  x = b.add("pool", GlobalAvgPool{}, {x});
  x = b.add("flatten", Flatten{}, {x});
  x = b.add("fc", Linear{options.classes}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

}  // namespace

std::vector<ModelInfo> plain_models() {
  return {
      {"plain20", "20 convolutions without shortcuts, CIFAR form", {3, 32, 32}, 10, build_plain20}};
}

}  // namespace tidepool::nn
