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
  void SetUp() override {
    static const std::string reason = why_no_cuda();
    if (!reason.empty()) GTEST_SKIP() << "no GPU is used: " << reason;
    ::alarm(300);
  }
  void TearDown() override { ::alarm(0); }
};

}  // namespace tidepool::testing
