// Recomputation and other schedules must repeat a kernel's bits: at other addresses, over other
// rubbish in the workspace, from another thread.
#include <gtest/gtest.h>
#include <omp.h>

#include <thread>

#include "nn/kernel_cases.h"
#include "nn/kernel_testing.h"

namespace tidepool::nn::testing {
namespace {

std::vector<OpCase> cases() {
  std::vector<OpCase> cases = cases_in_all_blocks();
  constexpr ConvShape kLarger[] = {{3, 64, 64, 32, 3, 1, 1},    {3, 3, 64, 32, 3, 1, 1},
                                   {5, 256, 256, 8, 3, 1, 1},   {3, 256, 512, 4, 3, 1, 1},
                                   {3, 64, 128, 16, 3, 2, 1},   {1, 64, 16, 56, 1, 2, 0},
                                   {3, 64, 64, 8, 3, 1, 1, 64}, {3, 64, 64, 9, {1, 7}, 1, {0, 3}}};
  for (const ConvShape& shape : kLarger) {
    for (const OpDesc& desc : convolutions(shape)) {
      cases.push_back({std::string("larger ") + desc.name(), desc});
    }
  }
  for (const OpDesc& desc : linears(100, 512, 512)) cases.push_back({"larger linear", desc});
  for (const OpDesc& desc : batch_norms(blocked(20, 64, 16, 16))) {
    cases.push_back({"larger batch norm", desc});
  }
  return cases;
}

class CpuKernelBits : public ::testing::TestWithParam<int> {
 protected:
  /// Calls `again(kernel, algorithm, run)` for every algorithm of every case and expects it to
  /// give `run` the bits of a plain run.
  template <class Again>
  void expect_repeatable(int shift, Again again) {
    for (const OpCase& c : cases()) {
      SCOPED_TRACE(c.name);
      const auto kernel = cpu_kernels(GetParam()).make(c.desc);
      for (std::size_t a = 0; a < kernel->algorithms().size(); ++a) {
        SCOPED_TRACE(kernel->algorithms()[a].name);
        const OpRun first(c.desc, 1);
        first.run(*kernel, static_cast<int>(a));
        const OpRun second(c.desc, 1, shift);
        again(*kernel, static_cast<int>(a), second);
        expect_same_bits(second, first);
      }
    }
  }
};

TEST_P(CpuKernelBits, RepeatOverAnotherWorkspaceContent) {
  expect_repeatable(
      0, [](Kernel& kernel, int algorithm, const OpRun& run) { run.run(kernel, algorithm, 0x3f); });
}

TEST_P(CpuKernelBits, RepeatAtOtherAddresses) {
  expect_repeatable(
      5, [](Kernel& kernel, int algorithm, const OpRun& run) { run.run(kernel, algorithm); });
}

// Whatever OpenMP's own thread count is there: a kernel keeps to the number it was made with.
TEST_P(CpuKernelBits, RepeatOnAnotherThread) {
  for (const int ambient : {1, 3}) {
    expect_repeatable(0, [&](Kernel& kernel, int algorithm, const OpRun& run) {
      std::thread([&] {
        omp_set_num_threads(ambient);
        run.run(kernel, algorithm);
        EXPECT_EQ(omp_get_max_threads(), ambient);
      }).join();
    });
  }
}

TEST_P(CpuKernelBits, RepeatInAKernelMadeUnderAnotherThreadCountOfOpenMp) {
  const int ambient = omp_get_max_threads();
  expect_repeatable(0, [](Kernel& kernel, int algorithm, const OpRun& run) {
    omp_set_num_threads(3 - GetParam());
    const auto other = cpu_kernels(GetParam()).make(run.desc());
    EXPECT_EQ(other->algorithms()[static_cast<std::size_t>(algorithm)].workspace,
              kernel.algorithms()[static_cast<std::size_t>(algorithm)].workspace);
    run.run(*other, algorithm);
  });
  omp_set_num_threads(ambient);
}

TEST_P(CpuKernelBits, RepeatInAnotherKernelOfTheSameOp) {
  expect_repeatable(0, [](Kernel&, int algorithm, const OpRun& run) {
    const auto other = cpu_kernels(GetParam()).make(run.desc());
    run.run(*other, algorithm);
  });
}

INSTANTIATE_TEST_SUITE_P(Threads, CpuKernelBits, ::testing::Values(1, 2));

}  // namespace
}  // namespace tidepool::nn::testing
