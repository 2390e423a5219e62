// For tests that need a GPU.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "device/cuda/cuda_device.h"

namespace tidepool::testing {

/// Skips each test, with the reason, where there is no GPU. Ends the process when one hangs.
class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override { skip_without(1); }
  void TearDown() override { ::alarm(0); }
  static void skip_without(int gpus) {
    const std::string reason = why_no_cuda(gpus);
    if (!reason.empty()) GTEST_SKIP() << "no GPU is used: " << reason;
    ::alarm(300);
  }
};

/// The same where there are too few of one kind. Suites are instantiated as TwoGpus and FourGpus:
/// scripts/gpu_check.sh leaves them out by these names where they would be skipped.
class SeveralGpusTest : public CudaTest, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override { skip_without(GetParam()); }
};

}  // namespace tidepool::testing
