#include "nn/models/unet.h"

#include <fmt/format.h>

namespace tidepool::nn {
namespace {

ValueId convolution_pair(GraphBuilder& b, const std::string& prefix, std::int64_t width,
                         ValueId x) {
  for (const int i : {1, 2}) {
    x = b.add(fmt::format("{}.conv{}", prefix, i), Conv2d{.channels = width, .bias = true}, {x});
    x = b.add(fmt::format("{}.relu{}", prefix, i), Relu{}, {x});
  }
  return x;
}

/// `width` of the first pair; each pool doubles it.
Result<Graph> build_u(const ModelInfo& info, const ModelOptions& options, std::int64_t width,
                      int pools) {
  GraphBuilder b(info.name);
  ValueId x = b.images(options.image);
  const ValueId labels = b.pixel_labels(options.image);
  std::vector<ValueId> skipped;
  for (int level = 1; level <= pools; ++level, width *= 2) {
    x = convolution_pair(b, fmt::format("down{}", level), width, x);
    skipped.push_back(x);
    x = b.add(fmt::format("down{}.pool", level), MaxPool{}, {x});
  }
  x = convolution_pair(b, "bottom", width, x);
  x = b.add("bottom.drop", Dropout{0.5F}, {x});
  for (int level = pools; level >= 1; --level) {
    width /= 2;
    const std::string prefix = fmt::format("up{}", level);
    x = b.add(prefix + ".enlarge", ConvTranspose2d{.channels = width, .bias = true}, {x});
    x = b.add(prefix + ".concat", Concat{}, {skipped[static_cast<std::size_t>(level) - 1], x});
    x = convolution_pair(b, prefix, width, x);
  }
  const Conv2d score{.channels = options.classes, .window = 1, .padding = 0, .bias = true};
  x = b.add("score", score, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

Result<Graph> build_unet(const ModelInfo& info, const ModelOptions& options) {
  return build_u(info, options, 64, 4);
}
Result<Graph> build_tiny_unet(const ModelInfo& info, const ModelOptions& options) {
  return build_u(info, options, 8, 2);
}

}  // namespace

std::vector<ModelInfo> unet_models() {
  return {
      {.name = "unet",
       .description = "U-Net for small images: a class for each pixel",
       .image = {3, 32, 32},
       .classes = 2,
       .build = build_unet,
       .segments = true},
      {.name = "tiny-unet",
       .description = "a U-Net with two pools, an eighth as wide, for trials",
       .image = {3, 8, 8},
       .classes = 2,
       .build = build_tiny_unet,
       .segments = true},
  };
}

}  // namespace tidepool::nn
