// What the CUDA device does with several GPUs where something goes wrong, or where they differ: the
// stand-in can be told to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "cuda_standin/standin.h"
#include "device/cuda/cuda_device.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SeveralGpusOnStandin : public ::testing::Test {
 protected:
  void SetUp() override { gpus_before_ = std::exchange(standin::behaviour().gpus, 2); }
  void TearDown() override {
    standin::behaviour().gpus = gpus_before_;
    standin::behaviour().different_gpus = false;
    int current = -1;
    cudaGetDevice(&current);
    EXPECT_EQ(current, 0) << "is as it was";
  }
  static CudaDeviceOptions without_libraries() {
    CudaDeviceOptions options;
    options.libraries = false;
    return options;
  }
  static DeviceConfig two(Bytes device = 4096) {
    DeviceConfig config{device, 4096, {}};
    config.arenas.insert(config.arenas.begin(), config.arenas[0]);
    config.streams = {{StreamKind::compute, 0}, {StreamKind::compute, 1}, {StreamKind::copy, 1}};
    return config;
  }
  template <class Call>
  static std::string error_of(const Call& call) {
    try {
      call();
    } catch (const DeviceError& error) {
      return error.what();
    }
    return "no error";
  }

  int gpus_before_ = 1;
};

TEST_F(SeveralGpusOnStandin, TooFewAreRefusedWithTheirNumber) {
  EXPECT_EQ(why_no_cuda(2), "");
  EXPECT_EQ(why_no_cuda(3), "3 GPUs asked for, 2 found");
  DeviceConfig three = two();
  three.arenas.insert(three.arenas.begin(), three.arenas[0]);
  EXPECT_EQ(error_of([&] { CudaDevice(without_libraries()).open(three); }),
            "3 GPUs asked for, 2 found");
}

TEST_F(SeveralGpusOnStandin, DifferentOnesAreRefusedWithTheirNames) {
  standin::behaviour().different_gpus = true;
  EXPECT_EQ(why_no_cuda(1), "");
  EXPECT_THAT(why_no_cuda(2), AllOf(HasSubstr("GPUs 0 and 1 differ"), HasSubstr("Another GPU"),
                                    HasSubstr("CUDA_VISIBLE_DEVICES")));
}

TEST_F(SeveralGpusOnStandin, AnArenaThatDoesNotFitNamesItsGpu) {
  standin::fail_call("cudaMalloc", cudaErrorMemoryAllocation, 1);
  EXPECT_THAT(error_of([] { CudaDevice(without_libraries()).open(two()); }),
              AllOf(StartsWith("GPU 1: cannot allocate the device arena"), HasSubstr("are free")));
  (void)cudaGetLastError();
}

TEST_F(SeveralGpusOnStandin, CudasOwnErrorsNameTheGpu) {
  CudaDevice device(without_libraries());
  device.open(two());
  standin::fail_call("cudaMemcpyAsync", cudaErrorIllegalAddress);
  EXPECT_THAT(error_of([&] {
                device.copy(2, {2, 0}, {1, 0}, 64);
              }),
              AllOf(StartsWith("GPU 1: cuda: "), HasSubstr("cudaErrorIllegalAddress")));
  standin::fail_call("cudaStreamSynchronize", cudaErrorIllegalAddress, 1);
  EXPECT_THAT(error_of([&] { device.synchronize(); }), StartsWith("GPU 1: "));
}

TEST_F(SeveralGpusOnStandin, WorkRunsWhileItsGpuIsCurrent) {
  CudaDevice device(without_libraries());
  device.open(two());
  int current = -1;
  Work work;
  work.context = &current;
  work.run = [](void* to, std::int64_t, NativeStream) { cudaGetDevice(static_cast<int*>(to)); };
  device.launch(1, work);
  EXPECT_EQ(current, 1);
  device.launch(0, work);
  EXPECT_EQ(current, 0);
  work.run = [](void*, std::int64_t, NativeStream) { throw std::runtime_error("unhappy"); };
  EXPECT_EQ(error_of([&] { device.launch(1, work); }), "GPU 1: unhappy");
}

/// A GPU that zeroes its arena late overwrites the first bytes that are copied there.
TEST_F(SeveralGpusOnStandin, EveryArenaIsZeroedBeforeItIsUsed) {
  constexpr Bytes kBytes = 4096;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    standin::set_seed(seed);
    CudaDevice device(without_libraries());
    device.open(two(kBytes));
    std::byte* const host = device.arena(2);
    std::memset(host, 0x5a, kBytes);
    device.copy(2, {1, 0}, {2, 0}, kBytes);
    device.synchronize();
    std::memset(host, 0, kBytes);
    device.copy(2, {2, 0}, {1, 0}, kBytes);
    device.synchronize();
    ASSERT_EQ(std::count(host, host + kBytes, std::byte{0x5a}), kBytes) << "seed " << seed;
  }
}

TEST_F(SeveralGpusOnStandin, BytesAreCountedOnEachGpu) {
  CudaDevice device(without_libraries());
  DeviceConfig config = two();
  config.arenas[1].bytes = 6 << 20;
  device.open(config);
  EXPECT_EQ(device.bytes_above_level(0), 2 << 20) << "the least that a driver takes";
  EXPECT_EQ(device.bytes_above_level(1), 6 << 20);
}

TEST_F(SeveralGpusOnStandin, LibrariesAreOnTheGpuOfTheirStream) {
  CudaDevice device({});
  device.open(two());
  device.synchronize();
}

}  // namespace
}  // namespace tidepool
