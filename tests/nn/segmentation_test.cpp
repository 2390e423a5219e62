// Models with a class for each pixel: what is their own. Gradients and exactness are tested where
// those of the others are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "nn/data/fashion_mnist.h"
#include "nn/evaluation_runner.h"
#include "nn/initial_values.h"
#include "nn/kernel_testing.h"
#include "nn/training_fixture.h"

namespace tidepool::nn {
namespace {

using ::testing::HasSubstr;
using tidepool::nn::testing::OpRun;

std::vector<float> segmentation_losses(const TrainingProgram& program, const SampleSource& data,
                                       std::int64_t iterations, const KernelList& kernels) {
  const auto runner = make_runner(program, data, kernels);
  run_reference(program, *runner, iterations);
  return runner->losses();
}

EvaluationResult evaluate_pixels(const Result<Graph>& graph, const SampleSource& data,
                                 const ProgramRunner& trained) {
  const auto program = build_evaluation_program(*graph, {.batch = 16}, reference_kernels());
  EXPECT_TRUE(program) << program.error().message;
  const auto runner = EvaluationRunner::create(*program, reference_kernels(), data);
  EXPECT_TRUE(runner && (*runner)->take_values(trained));
  run_reference(*program, **runner, (*runner)->iterations());
  return (*runner)->result();
}

struct SegmentationRun {
  const char* model;
  std::int64_t iterations;  ///< half of what a narrow FCN knows is dropped: it learns slowly
};

class Segmentation : public ::testing::TestWithParam<SegmentationRun> {};

TEST_P(Segmentation, LowersTheLossAndFindsPixels) {
  const auto& [model, iterations] = GetParam();
  const auto graph = build_model(model);
  const auto program =
      build(graph, {.batch = 16, .optimizer = Optimizer::adamw, .weight_decay = 0.01F});
  const SyntheticMasks data(program.image, program.classes, 200);
  TrainingSettings settings;
  settings.learning_rate = [](std::int64_t) { return 0.003F; };
  const auto runner = make_runner(program, data, reference_kernels(), settings);
  const EvaluationResult before = evaluate_pixels(graph, data, *runner);
  run_reference(program, *runner, iterations);
  for (const float loss : runner->losses()) ASSERT_TRUE(std::isfinite(loss));
  EXPECT_LT(runner->losses().back(), 0.6F * runner->losses()[0]);
  const EvaluationResult after = evaluate_pixels(graph, data, *runner);
  EXPECT_EQ(after.samples, 200);
  EXPECT_EQ(after.answers, 64);
  EXPECT_TRUE(after.pixels);
  EXPECT_LT(after.mean_loss, 0.6 * before.mean_loss);
  EXPECT_GT(after.accuracy, 0.8) << "of the pixels, " << before.accuracy << " at the start";
}

INSTANTIATE_TEST_SUITE_P(Models, Segmentation,
                         ::testing::Values(SegmentationRun{"tiny-fcn", 160},
                                           SegmentationRun{"tiny-unet", 40}),
                         [](const auto& each) {
                           return std::string(each.param.model).substr(sizeof "tiny-" - 1);
                         });

// Without batch norm rounds change nothing but the order of sums; so do layouts. Storages of one
// layout not even that.
TEST(SegmentingGraph, LossesDependOnNeitherLayoutNorStorageNorRounds) {
  const SyntheticMasks data({3, 9, 8}, 4, 40);
  std::vector<std::vector<float>> all;
  for (const KernelList* kernels : {&reference_kernels(), &blocked_reference_kernels()}) {
    for (const std::int64_t sub_batch : {0, 3}) {
      for (const Storage storage : {Storage::separate, Storage::in_place}) {
        const TrainingOptions options{.batch = 7, .sub_batch = sub_batch, .storage = storage};
        const auto program = build(make_segmenting_graph(), options, *kernels);
        all.push_back(segmentation_losses(program, data, 4, *kernels));
      }
      EXPECT_EQ(all.back(), all[all.size() - 2]) << kernels->name;
    }
  }
  for (const auto& losses : all) {
    for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], all[0][i], 1e-3F);
  }
}

/// One transposed convolution in a graph of its own; the op that is its forward pass.
OpDesc transposed_convolution(const ConvTranspose2d& spec, const ImageShape& image,
                              const ImageShape& out, TrainingProgram& program) {
  GraphBuilder b("transposed");
  const ValueId x = b.images(image);
  const ValueId labels = b.pixel_labels(out);
  const ValueId y = b.add("up", spec, {x});
  program = build(b.finish(b.add("loss", SoftmaxCrossEntropy{}, {y, labels})), {.batch = 1});
  const OpId op = find_op(program.program, "up.forward");
  EXPECT_NE(op, kNone);
  return program.ops[static_cast<std::size_t>(op)];
}

TEST(ConvTranspose2d, PutsItsFiltersSideBySideOrOnTopOfEachOther) {
  TrainingProgram program;
  const ConvTranspose2d spec{.channels = 2, .window = {1, 3}, .stride = 2};
  const OpRun run(transposed_convolution(spec, {1, 1, 2}, {2, 1, 5}, program), 1);
  const float x[] = {1, 2}, weight[] = {1, 10, 100, 3, 0, 0};
  std::copy(std::begin(x), std::end(x), run.floats(0));
  std::copy(std::begin(weight), std::end(weight), run.floats(1));
  run.run_reference();
  const float expected[] = {1, 10, 102, 20, 200, 3, 0, 6, 0, 0};
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(run.floats(2)[i], expected[i]) << i;
}

// What FCN's last layer does before it is trained: away from the border that of `Upsample`, which
// repeats the border instead of fading to 0.
TEST(ConvTranspose2d, MayStartAsBilinearUpsampling) {
  constexpr std::int64_t kFactor = 4, kSide = 5, kLarge = kFactor * kSide;
  TrainingProgram program;
  const ConvTranspose2d spec{.channels = 3,
                             .window = 2 * kFactor,
                             .stride = kFactor,
                             .padding = kFactor / 2,
                             .bilinear = true};
  const OpDesc forward =
      transposed_convolution(spec, {3, kSide, kSide}, {3, kLarge, kLarge}, program);
  const OpRun actual(forward, 1);
  const OpRun expected({.op = UpsampleForward{{kFactor, true}},
                        .operands = {forward.operands[0], forward.operands[2]}},
                       1);
  ASSERT_EQ(program.parameters[0].initialiser, Initialiser::bilinear);
  write_initial_value(program.parameters[0], forward.operands[1], 1,
                      {actual.buffer(1).data(), actual.buffer(1).size()});
  expected.copy_operand(0, actual, 0);
  actual.run_reference();
  expected.run_reference();
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t h = kFactor / 2; h < kLarge - kFactor / 2; ++h) {
      for (std::int64_t w = kFactor / 2; w < kLarge - kFactor / 2; ++w) {
        EXPECT_NEAR(actual.at(2, 0, c, h, w), expected.at(1, 0, c, h, w), 1e-6F)
            << c << ' ' << h << ' ' << w;
      }
    }
  }
}

TEST(ConvTranspose2d, ItsOpsAreThoseOfAConvolution) {
  const auto program = build(build_model("tiny-unet"), {.batch = 2}, blocked_reference_kernels());
  const auto expect_kind = [&](const char* op, const char* kind, Phase phase) {
    const OpId id = find_op(program.program, op);
    ASSERT_NE(id, kNone) << op;
    EXPECT_EQ(program.program.ops[id].kind, kind) << op;
    EXPECT_EQ(program.program.ops[id].phase, phase) << op;
  };
  expect_kind("up1.enlarge.reorder_weight", "reorder", Phase::forward);
  expect_kind("up1.enlarge.forward", "conv_backward_data", Phase::forward);
  expect_kind("up1.enlarge.backward_data", "conv_forward", Phase::backward);
  expect_kind("up1.enlarge.backward_weights", "conv_backward_weights", Phase::backward);
}

TEST(SyntheticMasks, HaveAClassInEachQuarter) {
  const SyntheticMasks data({3, 6, 4}, 5, 100);
  const std::vector<Field> fields = data.fields();
  ASSERT_EQ(fields.size(), 2U);
  EXPECT_EQ(fields[1].type, (ValueType{{6, 4}, ElementType::i32}));
  EXPECT_EQ(fields[1].classes, 5);
  std::vector<bool> seen(5);
  for (std::int64_t sample = 0; sample < data.size(); ++sample) {
    std::vector<std::int32_t> mask(24);
    data.read(1, sample, reinterpret_cast<std::byte*>(mask.data()));
    for (std::size_t i = 0; i < mask.size(); ++i) {
      ASSERT_TRUE(mask[i] >= 0 && mask[i] < 5);
      EXPECT_EQ(mask[i], mask[i / 12 * 12 + i % 4 / 2 * 2]) << "that of its quarter's corner";
      seen[static_cast<std::size_t>(mask[i])] = true;
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 5);
}

TEST(FashionMnistMasks, AreWhereTheImageIsNotBlack) {
  if (!std::filesystem::exists(std::string(kFashionMnistFolder) + "/t10k-images-idx3-ubyte.gz")) {
    GTEST_SKIP() << "Debian's dataset-fashion-mnist is not installed";
  }
  const auto masks = load_fashion_mnist_masks(Split::test);
  const auto images = load_fashion_mnist(Split::test);
  ASSERT_TRUE(masks && images);
  EXPECT_EQ((*masks)->size(), (*images)->size());
  std::vector<float> image(3 * 32 * 32), own_image(image.size());
  std::vector<std::int32_t> mask(32 * 32);
  std::int64_t clothing = 0;
  for (std::int64_t sample = 0; sample < 50; ++sample) {
    (*images)->fill(sample, image.data());
    (*masks)->read(0, sample, reinterpret_cast<std::byte*>(own_image.data()));
    (*masks)->read(1, sample, reinterpret_cast<std::byte*>(mask.data()));
    EXPECT_EQ(own_image, image);
    for (std::size_t i = 0; i < mask.size(); ++i) {
      ASSERT_EQ(mask[i], image[i] > image[0] ? 1 : 0) << "the corner is padding";
      clothing += mask[i];
    }
  }
  EXPECT_GT(clothing, 50 * 1024 / 5);
  EXPECT_LT(clothing, 50 * 1024 * 4 / 5);
}

TEST(FashionMnistMasks, NameTheFileThatIsMissing) {
  const auto masks = load_fashion_mnist_masks(Split::train, "/no/such/folder");
  ASSERT_FALSE(masks);
  EXPECT_THAT(masks.error().message, HasSubstr("/no/such/folder/train-images"));
}

}  // namespace
}  // namespace tidepool::nn
