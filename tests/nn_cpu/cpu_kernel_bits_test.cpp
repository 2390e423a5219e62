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

/// Runs an algorithm of a kernel once more, on the same values.
using Again = void (*)(Kernel& kernel, int algorithm, const OpRun& run, int threads);

/// Whatever OpenMP's own thread count is there: a kernel keeps to the number it was made with.
template <int kAmbient>
void on_another_thread(Kernel& kernel, int algorithm, const OpRun& run, int /*threads*/) {
  std::thread([&] {
    omp_set_num_threads(kAmbient);
    run.run(kernel, algorithm);
    EXPECT_EQ(omp_get_max_threads(), kAmbient);
  }).join();
}

struct Way {
  const char* name;
  int shift;  ///< of addresses
  Again again;
};

constexpr Way kWays[] = {
    {"over another workspace content", 0,
     [](Kernel& kernel, int algorithm, const OpRun& run, int) {
       run.run(kernel, algorithm, 0x3f);
     }},
    {"at other addresses", 5,
     [](Kernel& kernel, int algorithm, const OpRun& run, int) { run.run(kernel, algorithm); }},
    {"on another thread", 0, on_another_thread<1>},
    {"on another thread, where OpenMP has three", 0, on_another_thread<3>},
    {"in a kernel made under another thread count of OpenMP", 0,
     [](Kernel& kernel, int algorithm, const OpRun& run, int threads) {
       const int ambient = omp_get_max_threads();
       omp_set_num_threads(3 - threads);
       const auto other = cpu_kernels(threads).make(run.desc());
       EXPECT_EQ(other->algorithms()[static_cast<std::size_t>(algorithm)].workspace,
                 kernel.algorithms()[static_cast<std::size_t>(algorithm)].workspace);
       run.run(*other, algorithm);
       omp_set_num_threads(ambient);
     }},
    {"in another kernel of the same op", 0,
     [](Kernel&, int algorithm, const OpRun& run, int threads) {
       run.run(*cpu_kernels(threads).make(run.desc()), algorithm);
     }},
};

class CpuKernelBits : public ::testing::TestWithParam<int> {};

TEST_P(CpuKernelBits, RepeatHoweverTheyRunAgain) {
  const int threads = GetParam();
  for (const OpCase& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto kernel = cpu_kernels(threads).make(c.desc);
    for (std::size_t a = 0; a < kernel->algorithms().size(); ++a) {
      SCOPED_TRACE(kernel->algorithms()[a].name);
      const OpRun first(c.desc, 1);
      first.run(*kernel, static_cast<int>(a));
      for (const Way& way : kWays) {
        SCOPED_TRACE(way.name);
        const OpRun second(c.desc, 1, way.shift);
        way.again(*kernel, static_cast<int>(a), second, threads);
        expect_same_bits(second, first);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, CpuKernelBits, ::testing::Values(1, 2));

}  // namespace
}  // namespace tidepool::nn::testing
