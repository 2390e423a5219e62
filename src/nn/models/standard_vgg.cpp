#include "nn/models/standard_vgg.h"

#include <fmt/format.h>

namespace tidepool::nn {
namespace {

ValueId fully_connected(GraphBuilder& b, int number, std::int64_t features, ValueId x) {
  x = b.add(fmt::format("fc{}", number), Linear{features}, {x});
  x = b.add(fmt::format("relu_fc{}", number), Relu{}, {x});
  return b.add(fmt::format("drop_fc{}", number), Dropout{0.5F}, {x});
}

template <int kFirst, int kSecond, int kThird, int kFourth, int kFifth>
Result<Graph> build_standard_vgg(const ModelInfo& info, const ModelOptions& options) {
  GraphBuilder b(info.name);
  ValueId x = b.images(options.image);
  const ValueId labels = b.labels();
  x = add_vgg_stages(b, {kFirst, kSecond, kThird, kFourth, kFifth}, x);
  x = b.add("flatten", Flatten{}, {x});
  x = fully_connected(b, 1, 4096, x);
  x = fully_connected(b, 2, 4096, x);
  x = b.add("fc3", Linear{options.classes}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

}  // namespace

ValueId add_vgg_stages(GraphBuilder& b, const VggStages& stages, ValueId x) {
  constexpr std::array<std::int64_t, 5> kWidths{64, 128, 256, 512, 512};
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (int i = 1; i <= stages[stage]; ++i) {
      const std::string suffix = fmt::format("{}_{}", stage + 1, i);
      x = b.add("conv" + suffix, Conv2d{.channels = kWidths[stage], .bias = true}, {x});
      x = b.add("relu" + suffix, Relu{}, {x});
    }
    x = b.add(fmt::format("pool{}", stage + 1), MaxPool{}, {x});
  }
  return x;
}

std::vector<ModelInfo> standard_vgg_models() {
  const ImageShape image{3, 224, 224};
  return {
      {"vgg16-imagenet", "VGG-16 for ImageNet, without batch norm", image, 1000,
       build_standard_vgg<2, 2, 3, 3, 3>},
      {"vgg19-imagenet", "VGG-19 for ImageNet, without batch norm", image, 1000,
       build_standard_vgg<2, 2, 4, 4, 4>},
      // Its layers are not published.
      {"vgg101-imagenet", "moDNN's VGG-101; stages of 2, 22, 66, 4 and 4 convolutions are a fit",
       image, 1000, build_standard_vgg<2, 22, 66, 4, 4>},
  };
}

}  // namespace tidepool::nn
