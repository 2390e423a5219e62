// What the presets offer for convolutions, and that the formulas count what they say.
#include "nn/kernels/preset/convolution_algorithms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nn/training_fixture.h"

namespace tidepool::nn {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Not;

struct ConvolutionOfTest {
  std::int64_t samples = 2, inputs = 3, outputs = 5, side = 14;
  Window window{.window = 3, .stride = 1, .padding = 1};
  std::int64_t groups = 1;

  [[nodiscard]] std::int64_t out() const {
    return (side + 2 * window.padding.height - window.window.height) / window.stride + 1;
  }
  [[nodiscard]] TensorDesc x() const { return {{samples, inputs, side, side}}; }
  [[nodiscard]] TensorDesc y() const { return {{samples, outputs, out(), out()}}; }
  [[nodiscard]] TensorDesc weight() const {
    return {{outputs, inputs / groups, window.window.height, window.window.width}};
  }
};

std::vector<OpDesc> convolutions_of(const ConvolutionOfTest& s) {
  OpDesc forward{ConvForward{s.window}}, data{ConvBackwardData{s.window}},
      weights{ConvBackwardWeights{s.window}};
  forward.operands = {s.x(), s.weight(), s.y()};
  data.operands = {s.y(), s.weight(), s.x()};
  weights.operands = {s.x(), s.y(), s.weight()};
  return {forward, data, weights};
}

std::vector<std::string> algorithm_names(const std::vector<KernelAlgorithm>& list) {
  std::vector<std::string> names;
  for (const KernelAlgorithm& a : list) names.push_back(a.name);
  return names;
}

Bytes workspace_offered(const OpDesc& desc, const std::string& name) {
  for (const KernelAlgorithm& a : convolution_algorithms(desc)) {
    if (a.name == name) return a.workspace;
  }
  ADD_FAILURE() << name << " is not offered";
  return 0;
}

std::vector<float> losses_of_two_iterations(const TrainingProgram& program,
                                            const KernelList& kernels) {
  const SyntheticDataset data({3, 8, 8}, 10, 64);
  const auto runner = make_runner(program, data, kernels);
  run_reference(program, *runner, 2);
  return runner->losses();
}

TEST(ConvolutionAlgorithms, A3x3OfStride1HasAllOfThemInEveryDirection) {
  for (const OpDesc& desc : convolutions_of({})) {
    const auto list = convolution_algorithms(desc);
    EXPECT_THAT(algorithm_names(list),
                ::testing::UnorderedElementsAre("implicit-gemm", "implicit-precomp-gemm", "gemm",
                                                "winograd", "fft"))
        << desc.name();
    EXPECT_EQ(list.front().name, "implicit-gemm");
    EXPECT_EQ(list.front().workspace, 0);
    EXPECT_TRUE(std::ranges::is_sorted(list, {}, &KernelAlgorithm::workspace));
    EXPECT_THAT(list, Each(::testing::Field(&KernelAlgorithm::deterministic, true)));
  }
}

TEST(ConvolutionAlgorithms, WorkspacesAreThoseOfTheFormulas) {
  // VGG's second convolution with a batch of 4.
  const ConvolutionOfTest s{.samples = 4, .inputs = 64, .outputs = 64, .side = 224};
  for (const OpDesc& desc : convolutions_of(s)) {
    EXPECT_EQ(workspace_offered(desc, "implicit-precomp-gemm"), 4 * (64 * 9 + 224 * 224));
    EXPECT_EQ(workspace_offered(desc, "gemm"), 4L * 4 * 64 * 9 * 224 * 224);
    const Bytes tiles = 4 * 38 * 38;  // of 6x6 values
    EXPECT_EQ(workspace_offered(desc, "winograd"), 64 * 64 * 64 * 4 + 64 * 4 * tiles * (64 + 64));
    EXPECT_EQ(workspace_offered(desc, "fft"), 256L * 129 * 8 * (4 * 128 + 64 * 64));
  }
}

TEST(ConvolutionAlgorithms, WinogradsTilesCoverWhatIsWritten) {
  // Without padding the input has 14 rows, three tiles of 6, and the output 12, two tiles.
  const auto ops = convolutions_of({.window = {.window = 3, .stride = 1, .padding = 0}});
  EXPECT_EQ(workspace_offered(ops[0], "winograd"), 64 * 4 * (15 + 2 * 4 * 8));
  EXPECT_EQ(workspace_offered(ops[1], "winograd"), 64 * 4 * (15 + 2 * 9 * 8));
  EXPECT_EQ(workspace_offered(ops[2], "winograd"), 64 * 4 * (15 + 2 * 4 * 8));
}

TEST(ConvolutionAlgorithms, WhatGrowsWithTheSubBatchIsWhatDependsOnSamples) {
  for (const std::size_t direction : {0U, 1U, 2U}) {
    const OpDesc two = convolutions_of({.samples = 2})[direction];
    const OpDesc six = convolutions_of({.samples = 6})[direction];
    EXPECT_EQ(workspace_offered(six, "gemm"), 3 * workspace_offered(two, "gemm"));
    EXPECT_EQ(workspace_offered(six, "implicit-precomp-gemm"),
              workspace_offered(two, "implicit-precomp-gemm"));
    const Bytes filters = 64 * 4 * 3 * 5;
    EXPECT_EQ(workspace_offered(six, "winograd") - filters,
              3 * (workspace_offered(two, "winograd") - filters));
  }
}

TEST(ConvolutionAlgorithms, OtherShapesHaveWhatCudnnOffersForThem) {
  const auto offered = [](const ConvolutionOfTest& s) {
    return algorithm_names(convolution_algorithms(convolutions_of(s)[0]));
  };
  const auto strided = offered({.window = {.window = 3, .stride = 2, .padding = 1}});
  EXPECT_THAT(strided, ElementsAre("implicit-gemm", "implicit-precomp-gemm", "gemm"));
  const auto pointwise = offered({.window = {.window = 1, .stride = 1, .padding = 0}});
  EXPECT_THAT(pointwise, ElementsAre("implicit-gemm", "implicit-precomp-gemm"));
  const auto projection = offered({.window = {.window = 1, .stride = 2, .padding = 0}});
  EXPECT_THAT(projection, ElementsAre("implicit-gemm", "implicit-precomp-gemm", "gemm"));
  const auto depthwise = offered({.inputs = 4, .outputs = 4, .groups = 4});
  EXPECT_THAT(depthwise, ElementsAre("implicit-gemm", "implicit-precomp-gemm"));
  const auto large = offered({.window = {.window = 5, .stride = 1, .padding = 2}});
  EXPECT_THAT(large, Contains("winograd"));
  const auto larger = offered({.window = {.window = 7, .stride = 1, .padding = 3}});
  EXPECT_THAT(larger, Contains("fft"));
  EXPECT_THAT(larger, Not(Contains("winograd")));
  const auto flat = offered({.window = {.window = {1, 7}, .stride = 1, .padding = {0, 3}}});
  EXPECT_THAT(flat, Not(Contains("winograd")));
  const auto image = offered({.side = 255});  // 257 with its padding
  EXPECT_THAT(image, Not(Contains("fft")));
  const auto padded = offered({.window = {.window = 3, .stride = 1, .padding = 3}});
  EXPECT_THAT(padded, Not(Contains("fft"))) << "the window is not larger than its padding";
}

TEST(ConvolutionAlgorithms, AWorkspaceThatNoProgramMayHaveIsNotOffered) {
  const ConvolutionOfTest huge{.samples = 1 << 20, .inputs = 512, .outputs = 512, .side = 511};
  EXPECT_THAT(algorithm_names(convolution_algorithms(convolutions_of(huge)[0])),
              ElementsAre("implicit-gemm", "implicit-precomp-gemm"));
}

TEST(ConvolutionAlgorithms, OtherOpsHaveNone) {
  EXPECT_TRUE(convolution_algorithms({ReluForward{}}).empty());
}

TEST(PresetKernels, ProgramsDifferFromThoseOfTheReferenceInAlgorithmsOnly) {
  const auto graph = build_model("tiny-resnet");
  const TrainingProgram plain = build(graph, {.batch = 8}, reference_kernels());
  const TrainingProgram preset = build(graph, {.batch = 8}, preset_kernels());
  ASSERT_EQ(preset.program.ops.size(), plain.program.ops.size());
  EXPECT_EQ(preset.tensors, plain.tensors);
  std::size_t several = 0;
  for (std::size_t i = 0; i < plain.program.ops.size(); ++i) {
    const Op& op = preset.program.ops[i];
    EXPECT_EQ(op.algorithms.size() > 1, op.kind.starts_with("conv_")) << op.name;
    EXPECT_EQ(op.algorithms[static_cast<std::size_t>(least_workspace_algorithm(op))].workspace,
              plain.program.ops[i].algorithms[0].workspace);
    several += op.algorithms.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(several, 10U);
}

TEST(PresetKernels, WhicheverAlgorithmRunsTheResultIsTheReferences) {
  const auto graph = build_model("tiny-resnet");
  const TrainingProgram preset = build(graph, {.batch = 8}, preset_kernels());
  const TrainingProgram plain = build(graph, {.batch = 8}, reference_kernels());
  EXPECT_EQ(losses_of_two_iterations(preset, preset_kernels()),
            losses_of_two_iterations(plain, reference_kernels()));
}

TEST(WorkspaceLimit, LargerAlgorithmsAreGoneAndTheProgramRuns) {
  const auto graph = build_model("tiny-resnet");
  const TrainingProgram all = build(graph, {.batch = 8}, preset_kernels());
  TrainingOptions options{.batch = 8};
  options.workspace_limit = 64 * 1024;
  const TrainingProgram some = build(graph, options, preset_kernels());
  std::size_t left = 0, there_were = 0;
  for (std::size_t i = 0; i < some.program.ops.size(); ++i) {
    for (const Algorithm& a : some.program.ops[i].algorithms) EXPECT_LE(a.workspace, 64 * 1024);
    left += some.program.ops[i].algorithms.size();
    there_were += all.program.ops[i].algorithms.size();
  }
  EXPECT_LT(left, there_were);
  EXPECT_GT(left, some.program.ops.size());
  EXPECT_EQ(losses_of_two_iterations(some, preset_kernels()),
            losses_of_two_iterations(all, preset_kernels()));
}

}  // namespace
}  // namespace tidepool::nn
