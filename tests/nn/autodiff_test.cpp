// The backward pass: gradients against finite differences, and the order of its ops.
#include "nn/autodiff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "nn/training_fixture.h"

namespace tidepool::nn {
namespace {

struct Variant {
  const char* name;
  Storage storage;
  bool blocked;
  bool tangled = false;
  bool branching = false;
  bool segmenting = false;

  [[nodiscard]] Result<Graph> graph() const {
    if (tangled) return make_tangled_graph();
    if (segmenting) return make_segmenting_graph();
    return branching ? make_branching_graph() : make_crooked_graph();
  }
  [[nodiscard]] std::size_t parameters() const {
    if (tangled) return 15;
    if (segmenting) return 8;
    return branching ? 10 : 12;
  }
};

std::string variant_name(const ::testing::TestParamInfo<Variant>& info) { return info.param.name; }

constexpr Variant kVariants[] = {{"separate", Storage::separate, false},
                                 {"in_place", Storage::in_place, false},
                                 {"separate_blocked", Storage::separate, true},
                                 {"in_place_blocked", Storage::in_place, true}};

constexpr Variant kTangled[] = {{"tangled_separate", Storage::separate, false, true},
                                {"tangled_in_place", Storage::in_place, false, true},
                                {"tangled_separate_blocked", Storage::separate, true, true},
                                {"tangled_in_place_blocked", Storage::in_place, true, true}};

constexpr Variant kBranching[] = {
    {"branching_separate", Storage::separate, false, false, true},
    {"branching_in_place", Storage::in_place, false, false, true},
    {"branching_separate_blocked", Storage::separate, true, false, true},
    {"branching_in_place_blocked", Storage::in_place, true, false, true}};

constexpr Variant kSegmenting[] = {
    {"segmenting_separate", Storage::separate, false, false, false, true},
    {"segmenting_in_place", Storage::in_place, false, false, false, true},
    {"segmenting_separate_blocked", Storage::separate, true, false, false, true},
    {"segmenting_in_place_blocked", Storage::in_place, true, false, false, true}};

// With momentum zero at the start, no weight decay and learning rate 0, the momentum after one
// iteration is the gradient.
class Gradients : public ::testing::TestWithParam<Variant> {
 protected:
  Gradients() : data_(data_for(*GetParam().graph(), 64)) {
    TrainingOptions options;
    options.batch = 12;
    options.weight_decay = 0;
    options.storage = GetParam().storage;
    program_ = build(GetParam().graph(), options, kernels());
    TrainingSettings settings;
    settings.learning_rate = [](std::int64_t) { return 0.0F; };
    runner_ = make_runner(program_, *data_, kernels(), settings);
    run_reference(program_, *runner_, 1);
    for (const Parameter& parameter : program_.parameters) {
      if (parameter.learnable) gradients_.push_back(floats(runner_->value(parameter.state[0])));
    }
  }

  [[nodiscard]] static const KernelList& kernels() {
    return GetParam().blocked ? blocked_reference_kernels() : reference_kernels();
  }

  /// The loss of iteration 0 with one parameter moved.
  double loss_at(const Parameter& parameter, const std::vector<float>& direction, double step) {
    const std::vector<std::byte> kept = runner_->value(parameter.tensor);
    std::vector<float> moved = floats(kept);
    for (std::size_t i = 0; i < moved.size(); ++i) {
      moved[i] += static_cast<float>(step * direction[i]);
    }
    runner_->store(parameter.tensor, reinterpret_cast<const std::byte*>(moved.data()));
    run_reference(program_, *runner_, 1);
    runner_->store(parameter.tensor, kept.data());
    return runner_->losses()[0];
  }

  std::unique_ptr<SampleSource> data_;
  TrainingProgram program_;
  std::unique_ptr<TrainingRunner> runner_;
  std::vector<std::vector<float>> gradients_;  ///< of the learnable parameters, in order
};

// A step along the gradient must change the loss by step times the gradient's length. A gradient
// of the wrong direction or the wrong length fails.
TEST_P(Gradients, MatchFiniteDifferences) {
  // One ReLU of the tangled graph has its kink within a step.
  const double tolerance = GetParam().tangled ? 0.01 : 0.005;
  std::size_t index = 0;
  for (const Parameter& parameter : program_.parameters) {
    if (!parameter.learnable) continue;
    const std::vector<float>& gradient = gradients_[index++];
    double length = 0;
    for (const float g : gradient) length += static_cast<double>(g) * g;
    length = std::sqrt(length);
    if (parameter.name == "fc1.bias") {
      EXPECT_LT(length, 1e-5) << "batch norm hides the bias";
      continue;
    }
    ASSERT_GT(length, 1e-4) << parameter.name;
    std::vector<float> direction;
    for (const float g : gradient) direction.push_back(static_cast<float>(g / length));
    const double step = 2e-4 / std::max(length, 0.1);
    const double slope =
        (loss_at(parameter, direction, step) - loss_at(parameter, direction, -step)) / (2 * step);
    EXPECT_NEAR(slope, length, tolerance * length) << parameter.name;
  }
  EXPECT_EQ(index, GetParam().parameters());
}

INSTANTIATE_TEST_SUITE_P(Storages, Gradients, ::testing::ValuesIn(kVariants), variant_name);
INSTANTIATE_TEST_SUITE_P(Tangled, Gradients, ::testing::ValuesIn(kTangled), variant_name);
INSTANTIATE_TEST_SUITE_P(Branching, Gradients, ::testing::ValuesIn(kBranching), variant_name);
INSTANTIATE_TEST_SUITE_P(Segmenting, Gradients, ::testing::ValuesIn(kSegmenting), variant_name);

class BackwardOrder : public ::testing::TestWithParam<Variant> {
 protected:
  BackwardOrder() {
    TrainingOptions options;
    options.batch = 4;
    options.storage = GetParam().storage;
    program_ = build(build_model("vgg16"), options,
                     GetParam().blocked ? blocked_reference_kernels() : reference_kernels());
  }

  [[nodiscard]] const Program& ir() const { return program_.program; }

  [[nodiscard]] std::vector<OpId> ops_that_access(TensorId tensor) const {
    std::vector<OpId> ops;
    for (std::size_t i = 0; i < ir().ops.size(); ++i) {
      for (const Access& access : ir().ops[i].accesses) {
        if (access.tensor == tensor) ops.push_back(static_cast<OpId>(i));
      }
    }
    return ops;
  }

  TrainingProgram program_;
};

TEST_P(BackwardOrder, WeightsAreUpdatedRightAfterTheirLastReader) {
  for (const Parameter& parameter : program_.parameters) {
    if (!parameter.learnable) continue;
    const OpId update = find_op(ir(), parameter.name + ".update");
    const OpId gradient_written =
        ops_that_access(find_tensor(ir(), "grad:" + parameter.name)).front();
    ASSERT_NE(update, kNone) << parameter.name;
    EXPECT_EQ(ops_that_access(parameter.tensor).back(), update) << parameter.name;
    EXPECT_LE(update - gradient_written, 3) << parameter.name;
    EXPECT_EQ(ir().ops[update].round, kNone);
  }
}

TEST_P(BackwardOrder, GradientsLiveShortly) {
  for (std::size_t t = 0; t < ir().tensors.size(); ++t) {
    if (ir().tensors[t].kind != TensorKind::gradient) continue;
    const std::vector<OpId> ops = ops_that_access(static_cast<TensorId>(t));
    EXPECT_LE(ops.back() - ops.front(), 9) << ir().tensors[t].name;
  }
}

TEST_P(BackwardOrder, ReordersWeightsRightBeforeTheirUse) {
  for (std::size_t i = 0; i < ir().ops.size(); ++i) {
    if (!program_.ops[i].is<ConvBackwardData>()) continue;
    EXPECT_NE(ir().ops[i].name, "conv1_1.backward_data") << "nobody wants the images' gradient";
    const bool reordered = program_.ops[i - 1].is<Reorder>() &&
                           ir().ops[i - 1].accesses[1].tensor == ir().ops[i].accesses[1].tensor;
    EXPECT_EQ(reordered, GetParam().blocked) << ir().ops[i].name;
    EXPECT_EQ(program_.ops[i].operands[1].layout,
              GetParam().blocked ? Layout::OIhw16o16i : Layout::plain);
  }
}

INSTANTIATE_TEST_SUITE_P(Storages, BackwardOrder, ::testing::ValuesIn(kVariants), variant_name);

TEST(Autodiff, AddsGradientsInTheFirstOneWhereNobodyElseNeedsIt) {
  const TrainingProgram in_place = build(make_tangled_graph(), {.batch = 3});
  const TrainingProgram separate =
      build(make_tangled_graph(), {.batch = 3, .storage = Storage::separate});
  int updates = 0;
  for (std::size_t i = 0; i < separate.ops.size(); ++i) {
    if (separate.ops[i].is<AddForward>()) {
      EXPECT_FALSE(separate.ops[i].in_place) << separate.program.ops[i].name;
    }
  }
  for (std::size_t i = 0; i < in_place.ops.size(); ++i) {
    updates += in_place.ops[i].is<AddForward>() && in_place.ops[i].in_place ? 1 : 0;
  }
  EXPECT_GE(updates, 6);
  EXPECT_LT(in_place.program.tensors.size(), separate.program.tensors.size());
}

TEST(Autodiff, AdditionOverwritesNothingAReluMade) {
  const TrainingProgram program = build(make_tangled_graph(), {.batch = 3});
  for (const char* kept : {"add1.out", "relu3.out"}) {
    EXPECT_NE(find_tensor(program.program, kept), kNone) << kept;
  }
  for (const char* shared : {"relu1.out", "relu2.out", "add2.out", "add3.out", "add5.out",
                             "add6.out", "relu4.out", "add7.out", "add8.out"}) {
    EXPECT_EQ(find_tensor(program.program, shared), kNone) << shared;
  }
}

// A side branch that only reads a value keeps it from being overwritten, and gets no gradient.
TEST(Autodiff, DoesNotOverwriteAValueWithTwoReaders) {
  auto graph = make_crooked_graph();
  ASSERT_TRUE(graph);
  ValueId shared = -1;
  for (std::size_t v = 0; v < graph->values.size(); ++v) {
    if (graph->values[v].name == "bn1.out") shared = static_cast<ValueId>(v);
  }
  const auto layer = static_cast<LayerId>(graph->layers.size());
  const auto output = static_cast<ValueId>(graph->values.size());
  graph->values[shared].consumers.push_back(layer);
  graph->values.push_back({"side.out", graph->values[shared].type, layer, {}});
  graph->layers.push_back({"side", Relu{}, {shared}, output});

  const TrainingProgram program = build(graph, {.batch = 3});
  for (const char* name : {"bn1.out", "relu1.out", "side.out"}) {
    EXPECT_NE(find_tensor(program.program, name), kNone) << name;
  }
  EXPECT_EQ(find_tensor(program.program, "drop1.out"), kNone) << "relu1.out has one reader";
  EXPECT_NE(find_op(program.program, "relu1.backward"), kNone);
  EXPECT_EQ(find_op(program.program, "side.backward"), kNone);
}

}  // namespace
}  // namespace tidepool::nn
