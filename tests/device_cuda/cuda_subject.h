// The CUDA device for the suites that every device takes (every_device.h, plans_on_every_device.h).
#pragma once

#include <memory>

#include "device/cuda/cuda_device.h"
#include "device_cuda/cuda_tag_runner.h"
#include "support/cuda.h"

namespace tidepool::testing {

/// Without cuDNN and cuBLAS.
inline CudaDeviceOptions cuda_options(const FaultPlan& faults = {}) {
  CudaDeviceOptions o;
  o.libraries = false;
  o.faults = faults;
  return o;
}

struct CudaSubject {
  using Fixture = CudaTest;
  using Runner = CudaTagRunner;
  static std::unique_ptr<Device> make(const FaultPlan& faults = {}) {
    return std::make_unique<CudaDevice>(cuda_options(faults));
  }
};

}  // namespace tidepool::testing
