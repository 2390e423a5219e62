#include <gtest/gtest.h>

#include <algorithm>

#include "nn/kernel_cases.h"
#include "nn/kernel_testing.h"

namespace tidepool::nn::testing {
namespace {

bool is_winograd(const KernelAlgorithm& algorithm) { return algorithm.name == "winograd"; }

/// Of the largest element. Winograd's transforms cost it two digits.
double tolerance_of(const KernelAlgorithm& algorithm) {
  return is_winograd(algorithm) ? 2e-4 : 1e-5;
}

void expect_agreement(const OpRun& actual, const OpRun& expected, double tolerance) {
  for (std::size_t i = 0; i < expected.desc().operands.size(); ++i) {
    expect_close(actual, expected, i, tolerance);
  }
}

class CpuKernels : public ::testing::TestWithParam<int> {};

TEST_P(CpuKernels, AgreeWithTheReferenceAndWriteEveryByte) {
  for (const OpCase& c : cases_in_all_blocks()) {
    SCOPED_TRACE(c.name);
    const OpRun expected(c.desc, 1);
    expected.run_reference();
    const auto kernel = cpu_kernels(GetParam()).make(c.desc);
    for (std::size_t a = 0; a < kernel->algorithms().size(); ++a) {
      SCOPED_TRACE(kernel->algorithms()[a].name);
      const OpRun actual(c.desc, 1);
      actual.run(*kernel, static_cast<int>(a));
      expect_agreement(actual, expected, tolerance_of(kernel->algorithms()[a]));
    }
  }
}

TEST_P(CpuKernels, AddToGradientsWithTheBitsOfASumThatIsWrittenOut) {
  const KernelList& kernels = cpu_kernels(GetParam());
  for (const OpCase& c : cases_in_all_blocks()) {
    if (c.desc.added == 0) continue;
    SCOPED_TRACE(c.name);
    OpDesc writes = c.desc;
    writes.added = 0;
    const auto kernel = kernels.make(c.desc), writing = kernels.make(writes);
    for (std::size_t a = 0; a < kernel->algorithms().size(); ++a) {
      const OpRun before(c.desc, 1), sum(c.desc, 1), term(writes, 1);
      sum.run(*kernel, static_cast<int>(a));
      term.run(*writing, static_cast<int>(a));
      write_out_sum(before, term);
      expect_same_bits(sum, term);
    }
  }
}

TEST_P(CpuKernels, AgreeWithTheReferenceInPlainLayouts) {
  for (const OpCase& c : all_cases()) {
    SCOPED_TRACE(c.name);
    const OpDesc desc = plain(c.desc);
    const OpRun expected(desc, 2);
    expected.run_reference();
    const OpRun actual(desc, 2);
    actual.run(*cpu_kernels(GetParam()).make(desc));
    expect_agreement(actual, expected, 1e-5);
  }
}

TEST_P(CpuKernels, FindTheFirstOfEqualMaximaLikeTheReference) {
  for (const OpCase& c : cases_in_all_blocks()) {
    if (!c.desc.is<MaxPoolForward>()) continue;
    SCOPED_TRACE(c.name);
    const OpRun expected(c.desc, 3), actual(c.desc, 3);
    for (const OpRun* run : {&expected, &actual}) {
      const std::size_t count = run->buffer(0).size() / sizeof(float);
      for (std::size_t i = 0; i < count; ++i) run->floats(0)[i] = std::max(0.F, run->floats(0)[i]);
    }
    expected.run_reference();
    actual.run(*cpu_kernels(GetParam()).make(c.desc));
    expect_agreement(actual, expected, 0);
  }
}

TEST_P(CpuKernels, RouteGradientsOfPaddedWindowsLikeTheReference) {
  const TensorDesc x = blocked(3, 20, 7, 7), y = blocked(3, 20, 4, 4);
  const TensorDesc index = as_type(y, ElementType::u8);
  const Window attributes{3, 2, 1};
  const OpRun forward(make_op(MaxPoolForward{attributes}, {x, y, index}), 1);
  forward.run_reference();
  const OpDesc desc = make_op(MaxPoolBackward{attributes}, {y, index, x});
  const OpRun expected(desc, 2), actual(desc, 2);
  for (const OpRun* run : {&expected, &actual}) run->copy_operand(1, forward, 2);
  expected.run_reference();
  actual.run(*cpu_kernels(GetParam()).make(desc));
  expect_agreement(actual, expected, 1e-6);
}

TEST_P(CpuKernels, BatchNormBackwardInPlaceGivesTheBitsOfTheOtherVariant) {
  for (const TensorDesc& x : {blocked(3, 64, 8, 8), blocked(5, 20, 3, 3), TensorDesc{{7, 48}}}) {
    const TensorDesc c{{x.dims[1]}};
    const OpRun apart(make_op(BatchNormBackward{}, {x, x, c, c, c, x, c, c}), 4);
    const OpRun together(in_place(make_op(BatchNormBackward{}, {x, x, c, c, c, c, c})), 4);
    apart.run(*cpu_kernels(GetParam()).make(apart.desc()));
    together.run(*cpu_kernels(GetParam()).make(together.desc()));
    const auto same = [&](std::size_t a, std::size_t b) {
      return std::memcmp(apart.buffer(a).data(), together.buffer(b).data(),
                         apart.buffer(a).size()) == 0;
    };
    EXPECT_TRUE(same(5, 1));
    EXPECT_TRUE(same(6, 5));
    EXPECT_TRUE(same(7, 6));
  }
}

TEST_P(CpuKernels, WinogradAgreesWithDirectOnLayersOfVgg16) {
  constexpr ConvShape kShapes[] = {{3, 64, 64, 32, 3, 1, 1},
                                   {3, 128, 256, 8, 3, 1, 1},
                                   {5, 256, 256, 8, 3, 1, 1},
                                   {3, 512, 512, 4, 3, 1, 1}};
  for (const ConvShape& shape : kShapes) {
    for (const OpDesc& desc : convolutions(shape)) {
      SCOPED_TRACE(desc.name());
      const auto kernel = cpu_kernels(GetParam()).make(desc);
      if (kernel->algorithms().size() < 2) GTEST_SKIP() << "no Winograd on this machine";
      const OpRun direct(desc, 5), winograd(desc, 5);
      direct.run(*kernel, 0);
      winograd.run(*kernel, 1);
      expect_agreement(winograd, direct, 5e-4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, CpuKernels, ::testing::Values(1, 2));

TEST(CpuConvolutions, OfferDirectFirstAndNameEachAlgorithmOnce) {
  for (const OpDesc& desc : convolutions({3, 64, 64, 8, 3, 1, 1})) {
    const auto kernel = cpu_kernels().make(desc);
    const auto algorithms = kernel->algorithms();
    // In other layouts where oneDNN has only plain loops in ours.
    EXPECT_TRUE(algorithms[0].name == "direct" || algorithms[0].name == "reordered");
    EXPECT_LE(std::count_if(algorithms.begin(), algorithms.end(), is_winograd), 1);
    for (const KernelAlgorithm& algorithm : algorithms) EXPECT_TRUE(algorithm.deterministic);
  }
}

/// Shapes for which oneDNN has plain loops in our layouts, at least on AVX-512 machines: 7 seconds
/// instead of 2 milliseconds in ResNet-50. They run in others, between reorders.
TEST(CpuConvolutions, BetweenReordersAgreeWithTheReference) {
  int reordered = 0;
  for (const ConvShape& shape : {ConvShape{1, 64, 20, 56, 1, 2, 0}, ConvShape{2, 18, 8, 3, 3, 2, 0},
                                 ConvShape{2, 8, 16, 3, 1, 1, 0}}) {
    for (const OpDesc& desc : convolutions(shape)) {
      SCOPED_TRACE(desc.name());
      const auto kernel = cpu_kernels().make(desc);
      reordered += kernel->algorithms()[0].name == "reordered";
      const OpRun actual(desc, 6), expected(desc, 6);
      actual.run(*kernel);
      expected.run_reference();
      expect_agreement(actual, expected, 1e-5);
    }
  }
  if (reordered == 0) GTEST_SKIP() << "oneDNN has code for all of these shapes on this machine";
}

TEST(CpuConvolutions, OfferWinogradForAllDirectionsOrForNone) {
  std::vector<std::size_t> counts;
  for (const OpDesc& desc : convolutions({3, 64, 64, 8, 3, 1, 1})) {
    counts.push_back(cpu_kernels().make(desc)->algorithms().size());
  }
  EXPECT_EQ(counts[0], counts[1]);
  EXPECT_EQ(counts[0], counts[2]);
}

TEST(CpuConvolutions, OfferWinogradForUnitStrideAndWindowsOfThreeOnly) {
  for (const ConvShape& shape : {ConvShape{3, 64, 64, 8, 3, 2, 1}, ConvShape{3, 64, 64, 8, 1, 1, 0},
                                 ConvShape{3, 3, 64, 8, 3, 1, 1}}) {
    for (const OpDesc& desc : convolutions(shape)) {
      EXPECT_EQ(cpu_kernels().make(desc)->algorithms().size(), 1U);
    }
  }
}

TEST(CpuKernelList, EndsWithTheReferenceKernels) {
  EXPECT_EQ(cpu_kernels().factories.back(), reference_kernels().factories.back());
}

TEST(CpuKernelList, HasItsOwnKernelForEveryOpOfVgg16) {
  for (const OpCase& c : cases_in_all_blocks()) {
    if (c.desc.is<BatchNormStatistics>()) continue;
    if (c.desc.is<SquaredErrorForward>() || c.desc.is<SquaredErrorBackward>()) continue;
    SCOPED_TRACE(c.name);
    EXPECT_NE(cpu_kernels().make(c.desc)->algorithms()[0].name, "reference");
  }
}

}  // namespace
}  // namespace tidepool::nn::testing
