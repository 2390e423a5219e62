// Updates of weights and statistics on the host have the bits of those on a GPU, and of the
// reference: several GPUs train to what one of them gives.
#include "nn/kernels/cuda/host_updates.h"

#include <gtest/gtest.h>

#include <cstring>

#include "nn/kernel_cases.h"
#include "nn/kernels/cuda/cuda.h"
#include "nn_cuda/kernel_device.h"
#include "support/cuda.h"

namespace tidepool::nn::testing {
namespace {

void expect_bits(const OpRun& actual, const OpRun& expected, const char* of) {
  for (std::size_t i = 0; i < expected.desc().operands.size(); ++i) {
    const GuardedBuffer &a = actual.buffer(i), &e = expected.buffer(i);
    ASSERT_EQ(std::memcmp(a.data(), e.data(), e.size()), 0) << of << ", operand " << i;
  }
}

OpDesc statistics(const TensorDesc& channels) {
  return make_op(BatchNormStatistics{.values = 12}, {channels, channels, channels, channels});
}

class HostUpdatesOfCuda : public tidepool::testing::CudaTest {};

TEST_F(HostUpdatesOfCuda, HaveTheBitsOfTheGpuAndOfTheReference) {
  KernelDevice device;
  const std::uint64_t iterations[] = {0, 1, 6, 999, 123'456};
  // The larger is worked on by several threads.
  for (const std::int64_t count : {7, 70'001}) {
    const TensorDesc weight{{count}};
    const OpDesc sum{.op = AddForward{}, .in_place = true, .operands = {weight, weight}};
    for (const OpDesc& desc : {sgd(weight), adamw(weight), sum, statistics(weight)}) {
      SCOPED_TRACE(desc.name());
      for (const std::uint64_t iteration : iterations) {
        const OpRun host(desc, iteration), gpu(desc, iteration), reference(desc, iteration);
        for (const OpRun* run : {&host, &gpu, &reference}) {
          if (desc.operands.size() > 2) run->control().iteration = iteration;
        }
        const auto on_host = cuda_host_kernels().make(desc);
        ASSERT_NE(on_host, nullptr);
        host.run(*on_host);
        reference.run_reference();
        device.run(*cuda_kernels().make(desc), 0, gpu);
        expect_bits(host, gpu, "the GPU's");
        expect_bits(host, reference, "the reference's");
      }
    }
  }
}

}  // namespace
}  // namespace tidepool::nn::testing
