#include "nn/models/inception.h"

#include <fmt/format.h>

namespace tidepool::nn {
namespace {

/// A convolution of a branch. Without padding unless `same`: then it keeps the size of its image.
struct Step {
  std::int64_t channels = 0;
  Size2d window = 1;
  bool same = true;
  std::int64_t stride = 1;
};

/// 3x3, halves the size.
Step reduce(std::int64_t channels) { return {channels, 3, false, 2}; }

class Inception {
 public:
  /// All widths of blocks are divided by `narrow`.
  Inception(GraphBuilder& b, std::int64_t narrow) : b_(b), narrow_(narrow) {}

  ValueId conv(const std::string& name, const Step& step, ValueId x) {
    const Size2d same{step.window.height / 2, step.window.width / 2};
    x = b_.add(name,
               Conv2d{.channels = step.channels,
                      .window = step.window,
                      .stride = step.stride,
                      .padding = step.same ? same : Size2d{0}},
               {x});
    x = b_.add(name + "_bn", BatchNorm{.epsilon = 1e-3F}, {x});
    return b_.add(name + "_relu", Relu{}, {x});
  }

  ValueId block_a(std::int64_t pool_width, ValueId x) {
    begin("a");
    return concat({branch("1x1", {{64}}, x), branch("5x5", {{48}, {64, 5}}, x),
                   branch("3x3", {{64}, {96, 3}, {96, 3}}, x), pooled(pool_width, x)});
  }

  ValueId block_b(ValueId x) {
    begin("b");
    return concat({branch("3x3", {reduce(384)}, x),
                   branch("3x3_twice", {{64}, {96, 3}, reduce(96)}, x), reduced(x)});
  }

  ValueId block_c(std::int64_t width, ValueId x) {
    const Size2d row{1, 7}, column{7, 1};
    begin("c");
    return concat({branch("1x1", {{192}}, x),
                   branch("7x7", {{width}, {width, row}, {192, column}}, x),
                   branch("7x7_twice",
                          {{width}, {width, column}, {width, row}, {width, column}, {192, row}}, x),
                   pooled(192, x)});
  }

  ValueId block_d(ValueId x) {
    begin("d");
    return concat({branch("3x3", {{192}, reduce(320)}, x),
                   branch("7x7", {{192}, {192, {1, 7}}, {192, {7, 1}}, reduce(192)}, x),
                   reduced(x)});
  }

  ValueId block_e(ValueId x) {
    begin("e");
    const ValueId narrow = branch("1x1", {{320}}, x);
    const ValueId middle = branch("3x3", {{384}}, x);
    const ValueId deep = branch("3x3_twice", {{448}, {384, 3}}, x);
    return concat({narrow, branch("3x3_row", {{384, {1, 3}}}, middle),
                   branch("3x3_column", {{384, {3, 1}}}, middle),
                   branch("3x3_twice_row", {{384, {1, 3}}}, deep),
                   branch("3x3_twice_column", {{384, {3, 1}}}, deep), pooled(192, x)});
  }

 private:
  void begin(const char* kind) { prefix_ = fmt::format("block{}{}.", ++blocks_, kind); }

  ValueId branch(const std::string& name, const std::vector<Step>& steps, ValueId x) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Step step = steps[i];
      step.channels /= narrow_;
      x = conv(fmt::format("{}{}_{}", prefix_, name, i + 1), step, x);
    }
    return x;
  }
  ValueId pooled(std::int64_t width, ValueId x) {
    x = b_.add(prefix_ + "avg_pool", AvgPool{.window = 3, .stride = 1, .padding = 1}, {x});
    return branch("pool", {{width}}, x);
  }
  ValueId reduced(ValueId x) { return b_.add(prefix_ + "max_pool", MaxPool{3, 2, 0}, {x}); }
  ValueId concat(const std::vector<ValueId>& branches) {
    return b_.add(prefix_ + "concat", Concat{}, branches);
  }

  GraphBuilder& b_;
  std::int64_t narrow_;
  int blocks_ = 0;
  std::string prefix_;
};

Result<Graph> finish_inception(GraphBuilder& b, const ModelOptions& options, ValueId labels,
                               ValueId x) {
  x = b.add("pool", GlobalAvgPool{}, {x});
  x = b.add("drop", Dropout{0.5F}, {x});
  x = b.add("flatten", Flatten{}, {x});
  x = b.add("fc", Linear{options.classes}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

Result<Graph> build_inception_v3(const ModelInfo& info, const ModelOptions& options) {
  GraphBuilder b(info.name);
  Inception net(b, 1);
  ValueId x = b.images(options.image);
  const ValueId labels = b.labels();
  x = net.conv("conv1", reduce(32), x);
  x = net.conv("conv2", {32, 3, false}, x);
  x = net.conv("conv3", {64, 3}, x);
  x = b.add("pool1", MaxPool{3, 2, 0}, {x});
  x = net.conv("conv4", {80}, x);
  x = net.conv("conv5", {192, 3, false}, x);
  x = b.add("pool2", MaxPool{3, 2, 0}, {x});
  for (const std::int64_t pool_width : {32, 64, 64}) x = net.block_a(pool_width, x);
  x = net.block_b(x);
  for (const std::int64_t width : {128, 160, 160, 192}) x = net.block_c(width, x);
  x = net.block_d(x);
  x = net.block_e(x);
  x = net.block_e(x);
  return finish_inception(b, options, labels, x);
}

/// From 7x7 on.
Result<Graph> build_tiny_inception(const ModelInfo& info, const ModelOptions& options) {
  GraphBuilder b(info.name);
  Inception net(b, 8);
  ValueId x = b.images(options.image);
  const ValueId labels = b.labels();
  x = net.conv("conv1", {16, 3}, x);
  x = net.block_a(32, x);
  x = net.block_b(x);
  x = net.block_c(128, x);
  x = net.block_d(x);
  x = net.block_e(x);
  return finish_inception(b, options, labels, x);
}

}  // namespace

std::vector<ModelInfo> inception_models() {
  return {
      {"inceptionv3",
       "InceptionV3 without its auxiliary classifier",
       {3, 299, 299},
       1000,
       build_inception_v3},
      {"tiny-inception",
       "one block of each kind of InceptionV3, an eighth as wide, for trials",
       {3, 8, 8},
       10,
       build_tiny_inception},
  };
}

}  // namespace tidepool::nn
