// What can be seen of the CUDA device without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "device/cuda/check.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/libraries.h"
#include "device/cuda/nvml.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Nothing links them: a misspelt or withdrawn function would be found at run time only.
TEST(CudaLibraries, HaveEveryFunctionThisProjectCalls) {
  const std::string missing = cuda::missing_libraries();
  if (missing.find("cannot open") != std::string::npos) GTEST_SKIP() << missing;
  EXPECT_EQ(missing, "");
  EXPECT_GE(cuda::cudnn().cudnnGetVersion(), CUDNN_MAJOR * 10000U);
}

TEST(CudaChecks, NameCallPlaceAndReason) {
  try {
    TIDEPOOL_CUDA_CHECK(cudaErrorMemoryAllocation);
    FAIL() << "no exception";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cudaErrorMemoryAllocation"),
                                    HasSubstr("tests/device_cuda/cuda_libraries_test.cpp:"),
                                    HasSubstr("out of memory")));
  }
}

TEST(CudaAvailability, OpenSaysWhyThereIsNoGpu) {
  const std::string reason = why_no_cuda();
  if (reason.empty()) GTEST_SKIP() << "there is one";
  CudaDevice device({});
  try {
    device.open({64, 64, {StreamKind::compute}});
    FAIL() << "no exception";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.what(), reason);
  }
}

TEST(CudaAvailability, TheReasonIsInWords) {
  const std::string reason = why_no_cuda();
  if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "there is a driver";
  EXPECT_THAT(reason, HasSubstr("no NVIDIA driver"));
}

TEST(Nvml, SaysWhyItCannotMeter) {
  const cuda::EnergyMeter meter(0);
  if (meter.available()) GTEST_SKIP() << "it can";
  EXPECT_NE(meter.why_not(), "");
}

}  // namespace
}  // namespace tidepool
