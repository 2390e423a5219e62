#include "nn/kernels/cuda/cuda.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "device/cuda/cuda_device.h"
#include "device/cuda/links.h"
#include "device/file/disk_calibration.h"
#include "job/device_kind.h"

namespace tidepool {
namespace {

/// Rounded, so that two measurements of one machine give the same numbers and cached plans are
/// found.
LinkSpeed rounded(double bytes_per_second, Nanos latency) {
  constexpr double kStep = 0.5e9;
  const double steps = std::max(1.0, std::round(bytes_per_second / kStep));
  return {steps * kStep, std::chrono::ceil<std::chrono::microseconds>(latency)};
}

/// In the same steps.
double rounded_bus(double bytes_per_second) {
  return rounded(bytes_per_second, {}).bytes_per_second;
}

/// Whatever GPUs share shows when all of them copy: a bus as fast as their links together is none
/// that they would notice.
void put_on_buses(const LinkMeasurement& links, std::int32_t devices, Machine& machine) {
  const auto of_all = [&](double measured, const LinkSpeed& link) {
    return std::min(rounded_bus(measured), devices * link.bytes_per_second);
  };
  machine.buses = {of_all(links.to_host_all, machine.to_host()),
                   of_all(links.to_device_all, machine.to_device())};
  for (Link& link : machine.links) link.bus = link.to == machine.host() ? 0 : 1;
}

Machine calibrated(std::int32_t devices, Bytes device_bytes, Bytes host_bytes) {
  const LinkMeasurement links = measure_links(device_bytes, host_bytes, devices);
  const CudaDevice device({});
  Machine machine;
  machine.name = "cuda";
  machine.description = "NVIDIA GPU, link as measured with both directions busy";
  machine.set_alignment(device.alignment());
  Bytes memory = cuda::total_memory(0);
  for (int gpu = 1; gpu < devices; ++gpu) memory = std::min(memory, cuda::total_memory(gpu));
  machine.set_device_memory(memory);
  // A plan copies in both directions at once most of the time: what the link gives then is what it
  // can count on.
  machine.to_host() = rounded(links.to_host_both, links.to_host.latency);
  machine.to_device() = rounded(links.to_device_both, links.to_device.latency);
  if (devices > 1) put_on_buses(links, devices, machine);
  return machine;
}

}  // namespace

DeviceKind cuda_device_kind() {
  DeviceKind kind;
  kind.name = "cuda";
  kind.description = "NVIDIA GPU: cuDNN and cuBLAS kernels, copies over pinned host memory";
  kind.kernels = [](int) -> const nn::KernelList& { return nn::cuda_kernels(); };
  kind.choose_kernels = [](const KernelRequest& request) -> const nn::KernelList& {
    return nn::cuda_kernels({request.tf32, request.nondeterministic});
  };
  kind.unavailable = [](std::int32_t devices) { return why_no_cuda(devices); };
  kind.versions = [] {
    const CudaVersions versions = cuda_versions();
    return DeviceVersions{versions.needed, versions.found};
  };
  // Of cuDNN's algorithms those without a workspace are several times slower.
  kind.algorithms = AlgorithmPolicy::heuristic;
  kind.calibrate = calibrated;
  kind.default_threads = [] { return 1; };
  kind.measure_disk = calibrate;
  kind.make = [](const DeviceRequest& request) -> std::unique_ptr<Device> {
    nn::load_cuda_kernels();
    for (int gpu = 1; gpu < request.devices; ++gpu) {
      const cuda::CurrentGpu current(gpu);
      nn::load_cuda_kernels();
    }
    CudaDeviceOptions options;
    if (!request.spill.folder.empty()) options.spill = request.spill;
    return std::make_unique<CudaDevice>(options);
  };
  return kind;
}

}  // namespace tidepool
