#include "nn/models/vgg.h"

#include <fmt/format.h>

namespace tidepool::nn {
namespace {

struct VggStage {
  std::int64_t width = 0;
  int convolutions = 0;
  float dropout = 0;  ///< after each convolution but the last
};

enum class Norm : std::uint8_t { batch, none };

ValueId norm_relu(GraphBuilder& b, const std::string& suffix, Norm norm, ValueId x) {
  if (norm == Norm::batch) x = b.add("bn" + suffix, BatchNorm{}, {x});
  return b.add("relu" + suffix, Relu{}, {x});
}

ValueId add_stage(GraphBuilder& b, int number, const VggStage& stage, Norm norm, ValueId x) {
  for (int i = 1; i <= stage.convolutions; ++i) {
    const std::string suffix = fmt::format("{}_{}", number, i);
    const Conv2d conv{.channels = stage.width, .bias = norm == Norm::none};
    x = b.add("conv" + suffix, conv, {x});
    x = norm_relu(b, suffix, norm, x);
    if (i < stage.convolutions) x = b.add("drop" + suffix, Dropout{stage.dropout}, {x});
  }
  return b.add(fmt::format("pool{}", number), MaxPool{}, {x});
}

Result<Graph> build(const ModelInfo& info, const ModelOptions& options,
                    const std::vector<VggStage>& stages, std::int64_t hidden, Norm norm) {
  GraphBuilder b(info.name);
  ValueId x = b.images(options.image);
  const ValueId labels = b.labels();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    x = add_stage(b, static_cast<int>(i) + 1, stages[i], norm, x);
  }
  x = b.add("flatten", Flatten{}, {x});
  x = b.add("drop_flatten", Dropout{0.5F}, {x});
  x = b.add("fc1", Linear{hidden}, {x});
  x = norm_relu(b, "_fc1", norm, x);
  x = b.add("drop_fc1", Dropout{0.5F}, {x});
  x = b.add("fc2", Linear{options.classes}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

template <int kFirst, int kSecond, int kRest3, int kRest, Norm kNorm = Norm::batch>
Result<Graph> build_vgg(const ModelInfo& info, const ModelOptions& options) {
  return build(info, options,
               {{64, kFirst, 0.3F},
                {128, kSecond, 0.4F},
                {256, kRest3, 0.4F},
                {512, kRest, 0.4F},
                {512, kRest, 0.4F}},
               512, kNorm);
}

template <Norm kNorm>
Result<Graph> build_tiny_vgg(const ModelInfo& info, const ModelOptions& options) {
  return build(info, options, {{16, 2, 0.3F}, {32, 2, 0.4F}}, 32, kNorm);
}

}  // namespace

std::vector<ModelInfo> vgg_models() {
  const ImageShape cifar{3, 32, 32};
  return {
      {"vgg11", "VGG-11 with batch norm, CIFAR form", cifar, 10, build_vgg<1, 1, 2, 2>},
      {"vgg13", "VGG-13 with batch norm, CIFAR form", cifar, 10, build_vgg<2, 2, 2, 2>},
      {"vgg16", "VGG-16 with batch norm, CIFAR form", cifar, 10, build_vgg<2, 2, 3, 3>},
      {"vgg19", "VGG-19 with batch norm, CIFAR form", cifar, 10, build_vgg<2, 2, 4, 4>},
      {"vgg16-plain", "VGG-16 without batch norm, CIFAR form", cifar, 10,
       build_vgg<2, 2, 3, 3, Norm::none>},
      {"tiny-vgg",
       "two VGG stages of widths 16 and 32, for trials",
       {3, 8, 8},
       10,
       build_tiny_vgg<Norm::batch>},
      {"tiny-vgg-plain", "tiny-vgg without batch norm", {3, 8, 8}, 10, build_tiny_vgg<Norm::none>},
  };
}

}  // namespace tidepool::nn
