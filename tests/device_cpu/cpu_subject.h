// The CPU device for the suites that every device takes (every_device.h, plans_on_every_device.h).
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "device/cpu/cpu_device.h"
#include "support/tag_runner.h"

namespace tidepool::testing {

/// With one compute thread.
inline CpuDeviceOptions cpu_options(const FaultPlan& faults = {}) {
  CpuDeviceOptions o;
  o.threads = 1;
  o.faults = faults;
  return o;
}

/// Ends the process when a test hangs.
class CpuTest : public ::testing::Test {
 protected:
  void SetUp() override { ::alarm(120); }
  void TearDown() override { ::alarm(0); }
};

struct CpuSubject {
  using Fixture = CpuTest;
  using Runner = TagRunner;
  static std::unique_ptr<Device> make(const FaultPlan& faults = {}) {
    return std::make_unique<CpuDevice>(cpu_options(faults));
  }
};

}  // namespace tidepool::testing
