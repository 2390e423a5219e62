// Every op on the device knows its layer and its phase: some planners decide by layer.
#include <gtest/gtest.h>

#include <map>

#include "nn/training_fixture.h"

namespace tidepool::nn {
namespace {

bool is_pass(const Op& op) { return op.phase == Phase::forward || op.phase == Phase::backward; }

void expect_layers_and_phases(const Program& program) {
  std::int32_t known = 0;
  std::map<std::int32_t, Phase> latest;  // of each round
  for (const Op& op : program.ops) {
    SCOPED_TRACE(op.name);
    if (op.place == OpPlace::host) {
      EXPECT_EQ(op.layer, kNone);
      EXPECT_EQ(op.phase, Phase::other);
      continue;
    }
    ASSERT_NE(op.layer, kNone);
    EXPECT_NE(op.phase, Phase::other);
    EXPECT_EQ(op.phase == Phase::update, !op.recomputable);
    // Layers in the order of their first op, which is one of the forward pass.
    EXPECT_LE(op.layer, known);
    if (op.layer == known) {
      EXPECT_EQ(op.phase, Phase::forward);
      ++known;
    }
    // Within a round no forward op follows a backward one.
    if (!is_pass(op)) continue;
    EXPECT_FALSE(op.phase == Phase::forward && latest[op.round] == Phase::backward);
    latest[op.round] = op.phase;
  }
  EXPECT_EQ(known, static_cast<std::int32_t>(program.layers.size()));
}

TEST(LayersAndPhases, AreKnownForEveryOpOfTheZoo) {
  for (const ModelInfo& model : models()) {
    const auto graph = build_model(model.name);
    for (const Storage storage : {Storage::separate, Storage::in_place}) {
      for (const KernelList* kernels : {&reference_kernels(), &blocked_reference_kernels()}) {
        for (const std::int64_t sub_batch : {0, 3}) {
          SCOPED_TRACE(model.name);
          if (model.clusters && (storage == Storage::separate || sub_batch > 0)) continue;
          const TrainingOptions options{.batch = 8,
                                        .sub_batch = sub_batch,
                                        .sub_batch_statistics = !model.clusters,
                                        .storage = storage};
          expect_layers_and_phases(build(graph, options, *kernels).program);
        }
      }
    }
    if (model.clusters) continue;
    const auto evaluation = build_evaluation_program(*graph, {.batch = 8}, reference_kernels());
    ASSERT_TRUE(evaluation);
    expect_layers_and_phases(evaluation->program);
  }
}

TEST(LayersAndPhases, OfTangledGraphsToo) {
  for (const Storage storage : {Storage::separate, Storage::in_place}) {
    expect_layers_and_phases(build(make_tangled_graph(), {.batch = 3, .storage = storage}).program);
  }
}

TEST(LayersAndPhases, AreThoseOfTheLayerAnOpWorksFor) {
  const auto program =
      build(build_model("tiny-resnet"), {.batch = 8, .sub_batch = 4, .sub_batch_statistics = true});
  const Program& ir = program.program;
  const auto expect = [&](const char* name, const char* layer, Phase phase) {
    const OpId id = find_op(ir, name);
    ASSERT_NE(id, kNone) << name;
    EXPECT_EQ(ir.layers[static_cast<std::size_t>(ir.ops[id].layer)], layer) << name;
    EXPECT_EQ(ir.ops[id].phase, phase) << name;
  };
  expect("stem_conv.forward@1", "stem_conv", Phase::forward);
  expect("stem_bn.statistics@0", "stem_bn", Phase::update);
  expect("stem_bn.backward@1", "stem_bn", Phase::backward);
  expect("stem_conv.backward_weights@1", "stem_conv", Phase::backward);
  expect("stem_conv.weight.update", "stem_conv", Phase::update);
  expect("fc.bias.update", "fc", Phase::update);
  expect("loss.backward@0", "loss", Phase::backward);
}

// A layer that only passes its input on has no op; the sum of the gradients of what it passes on
// belongs to the layer that made the bytes.
TEST(LayersAndPhases, GiveSumsOfGradientsToTheLayerThatMadeTheValue) {
  GraphBuilder b("views");
  ValueId x = b.add("conv", Conv2d{.channels = 4}, {b.images({3, 4, 4})});
  x = b.add("off", Dropout{0.0F}, {x});
  x = b.add("sum", Add{}, {b.add("left", Relu{}, {x}), b.add("right", Relu{}, {x})});
  x = b.add("fc", Linear{3}, {b.add("flatten", Flatten{}, {x})});
  const auto graph = b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, b.labels()}));
  const auto program = build(graph, {.batch = 2});
  expect_layers_and_phases(program.program);
  EXPECT_EQ(program.program.layers,
            (std::vector<std::string>{"conv", "left", "right", "sum", "fc", "loss"}));
  const OpId sum = find_op(program.program, "grad:off.out.sum2");
  ASSERT_NE(sum, kNone);
  EXPECT_EQ(program.program.ops[sum].layer, 0);
  EXPECT_EQ(program.program.ops[sum].phase, Phase::backward);
}

}  // namespace
}  // namespace tidepool::nn
