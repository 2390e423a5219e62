#include "nn/models/fcn.h"

#include <fmt/format.h>

#include "nn/models/standard_vgg.h"

namespace tidepool::nn {
namespace {

/// What follows the pools, of a map that is `factor` times smaller than the image.
struct FcnHead {
  std::int64_t window = 7;
  std::int64_t width = 4096;
  std::int64_t factor = 32;
};

ValueId dropped_convolution(GraphBuilder& b, int number, const Conv2d& spec, ValueId x) {
  x = b.add(fmt::format("fc{}", number), spec, {x});
  x = b.add(fmt::format("relu_fc{}", number), Relu{}, {x});
  return b.add(fmt::format("drop_fc{}", number), Dropout{0.5F}, {x});
}

Result<Graph> finish_fcn(GraphBuilder& b, const ModelOptions& options, const FcnHead& head,
                         ValueId labels, ValueId x) {
  x = dropped_convolution(
      b, 6,
      Conv2d{
          .channels = head.width, .window = head.window, .padding = head.window / 2, .bias = true},
      x);
  const auto narrow = [](std::int64_t channels) {
    return Conv2d{.channels = channels, .window = 1, .padding = 0, .bias = true};
  };
  x = dropped_convolution(b, 7, narrow(head.width), x);
  Conv2d score = narrow(options.classes);
  score.zero = true;
  x = b.add("score", score, {x});
  const ConvTranspose2d enlarge{.channels = options.classes,
                                .window = 2 * head.factor,
                                .stride = head.factor,
                                .padding = head.factor / 2,
                                .bilinear = true};
  x = b.add("upscore", enlarge, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

Result<Graph> build_fcn32s(const ModelInfo& info, const ModelOptions& options) {
  GraphBuilder b(info.name);
  const ValueId images = b.images(options.image);
  const ValueId labels = b.pixel_labels(options.image);
  return finish_fcn(b, options, {}, labels, add_vgg_stages(b, kVgg16Stages, images));
}

Result<Graph> build_tiny_fcn(const ModelInfo& info, const ModelOptions& options) {
  GraphBuilder b(info.name);
  ValueId x = b.images(options.image);
  const ValueId labels = b.pixel_labels(options.image);
  for (const int stage : {1, 2}) {
    x = b.add(fmt::format("conv{}", stage), Conv2d{.channels = 8 * stage, .bias = true}, {x});
    x = b.add(fmt::format("relu{}", stage), Relu{}, {x});
    x = b.add(fmt::format("pool{}", stage), MaxPool{}, {x});
  }
  return finish_fcn(b, options, {3, 32, 4}, labels, x);
}

}  // namespace

std::vector<ModelInfo> fcn_models() {
  return {
      {.name = "fcn32s",
       .description = "FCN-32s on VGG-16: a class for each pixel",
       .image = {3, 224, 224},
       .classes = 21,
       .build = build_fcn32s,
       .segments = true},
      {.name = "tiny-fcn",
       .description = "two stages and an upsampling by 4, for trials",
       .image = {3, 8, 8},
       .classes = 3,
       .build = build_tiny_fcn,
       .segments = true},
  };
}

}  // namespace tidepool::nn
