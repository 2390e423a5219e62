// The kinds of device this build has. A backend adds one file here and one line in CMake.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "cost/machine.h"
#include "device/device.h"
#include "nn/kernel.h"

namespace tidepool::cli {

struct DeviceRequest {
  int threads = 0;  ///< 0: the kind's default
  Link to_host;     ///< emulated links only
  Link to_device;
};

struct DeviceKind {
  std::string name;
  std::string description;
  const nn::KernelList* kernels = nullptr;
  /// Sets what kernels depend on for the calling thread (the number of OpenMP threads).
  void (*prepare_thread)(int threads) = nullptr;
  int (*default_threads)() = nullptr;
  std::unique_ptr<Device> (*make)(const DeviceRequest& request) = nullptr;
};

/// Never empty in a useful build; the first is the default.
std::span<const DeviceKind> device_kinds();
Result<const DeviceKind*> find_device_kind(std::string_view name);

}  // namespace tidepool::cli
