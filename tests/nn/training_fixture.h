// What the tests of training share: small graphs, blocked reference kernels, one-line builders.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/data/synthetic.h"
#include "nn/data/synthetic_masks.h"
#include "nn/data/synthetic_text.h"
#include "nn/models/model.h"
#include "nn/ops/op_desc.h"
#include "nn/training_program.h"
#include "nn/training_runner.h"
#include "support/reference_run.h"

namespace tidepool::nn {

/// The reference kernels on blocked layouts.
inline const KernelList& blocked_reference_kernels() {
  static const KernelList list = [] {
    KernelList blocked = reference_kernels();
    blocked.name = "reference-blocked";
    blocked.channel_block = 16;
    return blocked;
  }();
  return list;
}

/// A model as it is, and an mlp of images so small that the reference's loops are not all about the
/// weights of its first layer.
inline Result<Graph> build_small_model(const std::string& name) {
  return name == "mlp" ? build_model(name, {.image = {3, 8, 8}}) : build_model(name);
}

/// Every kind of layer on shapes that are no multiples of anything: padded channel blocks, a
/// window that leaves a border, a flatten that must reorder.
inline Result<Graph> make_crooked_graph() {
  GraphBuilder b("crooked");
  ValueId x = b.images({3, 9, 8});
  const ValueId labels = b.labels();
  x = b.add("conv1", Conv2d{.channels = 5}, {x});
  x = b.add("bn1", BatchNorm{}, {x});
  x = b.add("relu1", Relu{}, {x});
  x = b.add("drop1", Dropout{0.3F}, {x});
  x = b.add("conv2", Conv2d{.channels = 18, .window = 3, .stride = 2, .padding = 1}, {x});
  x = b.add("bn2", BatchNorm{}, {x});
  x = b.add("relu2", Relu{}, {x});
  x = b.add("pool", MaxPool{}, {x});
  x = b.add("flatten", Flatten{}, {x});
  x = b.add("drop2", Dropout{0.2F}, {x});
  x = b.add("fc1", Linear{7}, {x});
  x = b.add("bn3", BatchNorm{}, {x});
  x = b.add("relu3", Relu{}, {x});
  x = b.add("fc2", Linear{4}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

/// Values with several readers in every combination that in-place storage has to notice: sums of
/// what ReLUs made, of a value with itself, of sums; gradients that three branches share and that
/// a ReLU, a batch norm, a dropout or a further sum would like to overwrite.
inline Result<Graph> make_tangled_graph() {
  GraphBuilder b("tangled");
  ValueId x = b.images({3, 9, 8});
  const ValueId labels = b.labels();
  x = b.add("conv1", Conv2d{.channels = 6}, {x});
  x = b.add("bn1", BatchNorm{}, {x});
  const ValueId first = b.add("relu1", Relu{}, {x});
  x = b.add("conv2", Conv2d{.channels = 6}, {first});
  x = b.add("relu2", Relu{}, {x});
  const ValueId sum1 = b.add("add1", Add{}, {first, x});
  const ValueId side = b.add("drop1", Dropout{0.2F}, {sum1});
  x = b.add("bn2", BatchNorm{}, {sum1});
  x = b.add("drop2", Dropout{0.3F}, {x});
  x = b.add("add2", Add{}, {x, side});
  x = b.add("add3", Add{}, {sum1, x});
  x = b.add("add4", Add{}, {x, x});
  ValueId y = b.add("bn3", BatchNorm{}, {x});
  x = b.add("relu3", Relu{}, {x});
  x = b.add("add5", Add{}, {x, y});
  const ValueId base = x;
  const ValueId left = b.add("conv4", Conv2d{.channels = 6}, {base});
  const ValueId right = b.add("conv5", Conv2d{.channels = 6}, {base});
  y = b.add("add6", Add{}, {base, right});
  x = b.add("add7", Add{}, {base, left});
  y = b.add("relu4", Relu{}, {y});
  x = b.add("add8", Add{}, {y, x});
  x = b.add("bn4", BatchNorm{}, {x});
  x = b.add("avg", AvgPool{3, 2}, {x});
  x = b.add("conv3", Conv2d{.channels = 5, .window = 1, .stride = 2, .padding = 0}, {x});
  x = b.add("flatten", Flatten{}, {x});
  x = b.add("fc", Linear{4}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

/// GELU where its input or its output has another reader, and on vectors.
inline Result<Graph> make_gelu_graph() {
  GraphBuilder b("gelu");
  ValueId x = b.images({3, 9, 8});
  const ValueId labels = b.labels();
  const ValueId first = b.add("conv1", Conv2d{.channels = 6}, {x});
  x = b.add("gelu1", Gelu{}, {first});
  x = b.add("drop", Dropout{0.2F}, {x});
  x = b.add("add", Add{}, {first, x});
  x = b.add("gelu2", Gelu{}, {x});
  x = b.add("pool", MaxPool{}, {x});
  x = b.add("flatten", Flatten{}, {x});
  x = b.add("fc1", Linear{7}, {x});
  x = b.add("gelu3", Gelu{}, {x});
  x = b.add("fc2", Linear{4}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

/// Concatenations where an input has another reader, comes twice, is the image, or is overwritten
/// elsewhere; what they make is overwritten. Depthwise, grouped and rectangular convolutions, with
/// bias and without; pools with padding and over whole images.
inline Result<Graph> make_branching_graph() {
  GraphBuilder b("branching");
  const ValueId images = b.images({3, 9, 8});
  const ValueId labels = b.labels();
  ValueId x = b.add("conv1", Conv2d{.channels = 6, .bias = true}, {images});
  const ValueId first = b.add("relu1", Relu{}, {x});
  x = b.add("depthwise", Conv2d{.channels = 6, .groups = 6}, {first});
  const ValueId left = b.add("bn1", BatchNorm{}, {x});
  const Conv2d row{.channels = 18, .window = {1, 5}, .padding = {0, 2}, .bias = true};
  const ValueId right = b.add("relu2", Relu{}, {b.add("row", row, {first})});
  x = b.add("concat1", Concat{}, {left, right, images, left});
  x = b.add("drop", Dropout{0.2F}, {x});
  const Conv2d column{.channels = 6, .window = {3, 1}, .stride = 2, .padding = {1, 0}, .groups = 3};
  x = b.add("column", column, {x});
  x = b.add("relu3", Relu{}, {x});
  const ValueId mean = b.add("mean", AvgPool{.window = 3, .stride = 1, .padding = 1}, {x});
  const ValueId most = b.add("most", MaxPool{3, 1, 1}, {x});
  const ValueId pair = b.add("concat2", Concat{}, {most, mean});
  x = b.add("concat3", Concat{}, {pair, x});
  x = b.add("relu4", Relu{}, {x});
  x = b.add("global", GlobalAvgPool{}, {x});
  x = b.add("flatten", Flatten{}, {x});
  x = b.add("fc", Linear{4}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

/// A class for each pixel: transposed convolutions of several windows and strides, with bias and
/// without, where a row of windows leaves a border; both ways of upsampling; values that go round.
inline Result<Graph> make_segmenting_graph() {
  GraphBuilder b("segmenting");
  const ImageShape image{3, 9, 8};
  ValueId x = b.images(image);
  const ValueId labels = b.pixel_labels(image);
  x = b.add("conv1", Conv2d{.channels = 6, .bias = true}, {x});
  const ValueId first = b.add("relu1", Relu{}, {x});
  x = b.add("pool1", MaxPool{}, {first});
  x = b.add("conv2", Conv2d{.channels = 18}, {x});
  const ValueId middle = b.add("relu2", Relu{}, {x});
  x = b.add("pool2", AvgPool{}, {middle});
  x = b.add("bilinear", Upsample{2, true}, {x});
  x = b.add("concat1", Concat{}, {middle, x});
  const ConvTranspose2d wide{
      .channels = 7, .window = {5, 4}, .stride = 2, .padding = 1, .bias = true};
  x = b.add("wide", wide, {x});
  x = b.add("relu3", Relu{}, {x});
  ValueId y = b.add("nearest", Upsample{2, false}, {middle});
  y = b.add("narrow", ConvTranspose2d{.channels = 6, .window = {2, 1}, .stride = 1}, {y});
  x = b.add("concat2", Concat{}, {first, x, y});
  x = b.add("drop", Dropout{0.2F}, {x});
  x = b.add("score", Conv2d{.channels = 4, .window = 1, .padding = 0, .bias = true}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

/// LSTMs whose outputs a dropout, a sum and another LSTM read, of two widths.
inline Result<Graph> make_recurrent_graph() {
  GraphBuilder b("recurrent");
  const ValueId tokens = b.tokens(7);
  const ValueId labels = b.token_labels(7);
  ValueId x = b.add("embedding", Embedding{11, 6, 9}, {tokens});
  const ValueId first = b.add("lstm1", Lstm{10}, {x});
  x = b.add("drop1", Dropout{0.2F}, {first});
  x = b.add("lstm2", Lstm{10}, {x});
  x = b.add("add", Add{}, {x, first});
  x = b.add("drop2", Dropout{0.3F}, {x});
  x = b.add("lstm3", Lstm{5}, {x});
  x = b.add("output", Linear{11, Initialiser::small_normal}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

inline TrainingProgram build(const Result<Graph>& graph, const TrainingOptions& options,
                             const KernelList& kernels = reference_kernels()) {
  EXPECT_TRUE(graph) << graph.error().message;
  auto program = build_training_program(*graph, options, kernels);
  EXPECT_TRUE(program) << program.error().message;
  return std::move(*program);
}

inline std::unique_ptr<TrainingRunner> make_runner(const TrainingProgram& program,
                                                   const SampleSource& data,
                                                   const KernelList& kernels = reference_kernels(),
                                                   const TrainingSettings& settings = {}) {
  auto runner = TrainingRunner::create(program, kernels, data, settings);
  EXPECT_TRUE(runner) << runner.error().message;
  return std::move(*runner);
}

/// Data that a program or a graph of the zoo takes.
template <class Model>
std::unique_ptr<SampleSource> make_data(const Model& model, std::int64_t sequence,
                                        std::int64_t size) {
  if (sequence == 0 && model.answers > 1) {
    return std::make_unique<SyntheticMasks>(model.image, model.classes, size);
  }
  if (sequence == 0) return std::make_unique<SyntheticDataset>(model.image, model.classes, size);
  return std::make_unique<SyntheticText>(TokenTask{sequence, model.answers < sequence},
                                         model.classes, size);
}
inline std::unique_ptr<SampleSource> data_for(const TrainingProgram& program, std::int64_t size) {
  const ProgramInput& first = program.inputs[0];
  return make_data(program, first.name == "tokens" ? first.type.elements() : 0, size);
}
inline std::unique_ptr<SampleSource> data_for(const Graph& graph, std::int64_t size) {
  if (graph.clusters > 0) return make_data(graph, 0, size);
  const Value& first = graph.values[graph.layers[0].output];
  return make_data(graph, first.name == "tokens" ? first.type.elements() : 0, size);
}

inline std::vector<float> floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// Position of the op, or -1.
inline OpId find_op(const Program& program, const std::string& name) {
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].name == name) return static_cast<OpId>(i);
  }
  return kNone;
}

inline TensorId find_tensor(const Program& program, const std::string& name) {
  for (std::size_t i = 0; i < program.tensors.size(); ++i) {
    if (program.tensors[i].name == name) return static_cast<TensorId>(i);
  }
  return kNone;
}

}  // namespace tidepool::nn
