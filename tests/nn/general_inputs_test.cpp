// Programs whose inputs are neither images nor labels, and whose loss has no classes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/random.h"
#include "nn/evaluation_runner.h"
#include "nn/training_fixture.h"

namespace tidepool::nn {
namespace {

using ::testing::HasSubstr;

/// Two vectors and what a fixed linear map makes of them, in an order of fields that is not the
/// graph's; and one number a sample that no graph here reads.
class Regression : public SampleSource {
 public:
  [[nodiscard]] std::string name() const override { return "regression"; }
  [[nodiscard]] std::int64_t size() const override { return 60; }
  [[nodiscard]] std::vector<Field> fields() const override {
    return {
        {"target", {{2}}}, {"weights", {{}, ElementType::i32}}, {"right", {{3}}}, {"left", {{5}}}};
  }
  void read(std::size_t field, std::int64_t sample, std::byte* to) const override {
    const std::vector<float> left = vector(sample, 5), right = vector(sample + 1000, 3);
    switch (field) {
      case 0: {
        const float target[] = {left[0] - 2 * left[4] + right[1], right[0] + 0.5F * left[2]};
        std::memcpy(to, target, sizeof target);
        return;
      }
      case 2:
        std::memcpy(to, right.data(), right.size() * sizeof(float));
        return;
      case 3:
        std::memcpy(to, left.data(), left.size() * sizeof(float));
        return;
      default:
        FAIL() << "nobody asked for field " << field;
    }
  }

 private:
  static std::vector<float> vector(std::int64_t sample, int size) {
    Random random(static_cast<std::uint64_t>(sample));
    std::vector<float> values;
    for (int i = 0; i < size; ++i) values.push_back(static_cast<float>(2 * random.uniform() - 1));
    return values;
  }
};

Result<Graph> make_graph(std::int64_t right = 3) {
  GraphBuilder b("two-vectors");
  const ValueId left = b.input("left", {{5}});
  const ValueId target = b.input("target", {{2}});
  const ValueId x = b.add("sum", Add{},
                          {b.add("from_left", Linear{2}, {left}),
                           b.add("from_right", Linear{2}, {b.input("right", {{right}})})});
  return b.finish(b.add("loss", MeanSquaredError{}, {x, target}));
}

TEST(GeneralInputs, AreFedByName) {
  const auto program = build(make_graph(), {.batch = 6, .sub_batch = 4});
  ASSERT_EQ(program.inputs.size(), 3U);
  EXPECT_EQ(program.inputs[0].name, "left");
  EXPECT_EQ(program.inputs[2].type, ValueType{{3}});
  EXPECT_EQ(program.classes, 0);
  const OpId feed = find_op(program.program, "feed_target@1");
  ASSERT_NE(feed, kNone);
  EXPECT_EQ(program.program.ops[feed].kind, "feed_target");
  EXPECT_EQ(program.program.ops[feed].place, OpPlace::host);
  EXPECT_EQ(program.tensors[find_tensor(program.program, "target@1")].dims,
            (std::vector<std::int64_t>{2, 2}));
}

TEST(GeneralInputs, TrainByMeanSquaredError) {
  const Regression data;
  for (const std::int64_t sub_batch : {0, 5}) {
    const auto program =
        build(make_graph(), {.batch = 12, .sub_batch = sub_batch, .weight_decay = 0});
    auto runner = TrainingRunner::create(program, reference_kernels(), data, {});
    ASSERT_TRUE(runner) << runner.error().message;
    run_reference(program, **runner, 300);
    EXPECT_GT((*runner)->losses()[0], 0.1F);
    EXPECT_LT((*runner)->losses()[299], 1e-4F) << "the map is linear";
    // d target[0] / d left[4]
    EXPECT_NEAR(floats((*runner)->value(find_tensor(program.program, "from_left.weight")))[4], -2,
                0.05);
  }
}

TEST(GeneralInputs, OfImagesMayBeComparedWithImages) {
  GraphBuilder b("denoise");
  const ValueId images = b.images({3, 6, 5});
  const ValueId x = b.add("conv", Conv2d{.channels = 3}, {images});
  const auto graph = b.finish(b.add("loss", MeanSquaredError{}, {x, images}));
  class Images final : public SampleSource {
   public:
    [[nodiscard]] std::string name() const override { return "images"; }
    [[nodiscard]] std::int64_t size() const override { return images_.size(); }
    [[nodiscard]] std::vector<Field> fields() const override { return images_.fields(); }
    void read(std::size_t field, std::int64_t sample, std::byte* to) const override {
      images_.read(field, sample, to);
    }
    SyntheticDataset images_{{3, 6, 5}, 4, 64};
  };
  const Images data;
  std::vector<std::vector<float>> losses;
  for (const KernelList* kernels : {&reference_kernels(), &blocked_reference_kernels()}) {
    for (const Storage storage : {Storage::separate, Storage::in_place}) {
      const auto program = build(graph, {.batch = 8, .storage = storage}, *kernels);
      auto runner = TrainingRunner::create(program, *kernels, data, {});
      ASSERT_TRUE(runner) << runner.error().message;
      run_reference(program, **runner, 20);
      losses.push_back((*runner)->losses());
    }
  }
  EXPECT_LT(losses[0][19], 0.5F * losses[0][0]);
  for (const auto& other : losses) {
    for (std::size_t i = 0; i < other.size(); ++i) EXPECT_NEAR(other[i], losses[0][i], 1e-4F);
  }
}

TEST(GeneralInputs, AreRefusedWhereTheDataLacksThem) {
  const auto message = [](const Result<Graph>& graph, const SampleSource& data) {
    const auto program = build(graph, {.batch = 6});
    const auto runner = TrainingRunner::create(program, reference_kernels(), data, {});
    EXPECT_FALSE(runner);
    return runner ? "" : runner.error().message;
  };
  EXPECT_THAT(message(make_graph(4), Regression()),
              HasSubstr("two-vectors takes right of 4, regression has 3"));
  EXPECT_THAT(message(make_graph(), SyntheticDataset({1, 2, 2}, 2, 60)),
              HasSubstr("takes left, which synthetic does not have"));
  GraphBuilder b("numbers");
  const ValueId x = b.add("fc", Linear{2}, {b.input("left", {{5}})});
  const auto graph = b.finish(
      b.add("loss", SoftmaxCrossEntropy{}, {x, b.input("target", {{}, ElementType::i32})}));
  EXPECT_THAT(message(graph, Regression()), HasSubstr("takes target of scalar, regression has 2"));
}

// Words as numbers: an integer input of any shape has its bytes, its feed op and its field.
TEST(GeneralInputs, MayBeIntegersUnderAnyName) {
  GraphBuilder b("judge");
  const ValueId x = b.add("fc", Linear{4}, {b.input("features", {{5}})});
  const auto graph =
      b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, b.input("word", {{}, ElementType::i32})}));
  const auto program = build(graph, {.batch = 3});
  EXPECT_EQ(program.inputs[1].classes, 4);
  const TensorId word = find_tensor(program.program, "word");
  ASSERT_NE(word, kNone);
  EXPECT_EQ(program.tensors[word].type, ElementType::i32);
  EXPECT_EQ(program.program.tensors[word].bytes, 3 * 4);
  EXPECT_EQ((Input{{{7}, ElementType::i32}}).infer({}), (ValueType{{7}, ElementType::i32}));
}

TEST(GeneralInputs, WithoutLabelsHaveNoEvaluation) {
  const auto program = build_evaluation_program(*make_graph(), {.batch = 4}, reference_kernels());
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code, ErrorCode::usage);
  EXPECT_THAT(program.error().message, HasSubstr("the loss 'loss' has no labels"));
}

TEST(TrainingProgram, NamesTheOpThatHasNoKernel) {
  const KernelList no_relu{
      "picky", 1, {[](const OpDesc& desc, const KernelContext& context) {
        return desc.is<ReluForward>() ? nullptr : reference_kernels().factories[0](desc, context);
      }}};
  const auto program = build_training_program(*build_model("mlp"), {.batch = 2}, no_relu);
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().message,
              HasSubstr("mlp: the picky kernels have none for op 'relu1.forward' (relu_forward)"));
}

}  // namespace
}  // namespace tidepool::nn
