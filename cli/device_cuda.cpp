#include <fmt/format.h>

#include "device/cuda/cuda_device.h"
#include "device/cuda/links.h"
#include "device_kind.h"
#include "nn/kernels/cuda/cuda.h"

namespace tidepool::cli {
namespace {

Machine calibrated() {
  const LinkMeasurement links = measure_links();
  Machine machine;
  machine.name = "cuda";
  machine.description =
      fmt::format("GPU; link alone {:.1f} GB/s out, {:.1f} GB/s in, together {:.1f} and {:.1f}",
                  links.to_host.bytes_per_second * 1e-9, links.to_device.bytes_per_second * 1e-9,
                  links.to_host_both * 1e-9, links.to_device_both * 1e-9);
  const CudaDevice device({});
  machine.alignment = device.alignment();
  machine.device_memory = device.total_memory();
  // A plan copies in both directions at once most of the time: what the link gives then is what it
  // can count on.
  machine.to_host = {links.to_host_both, links.to_host.latency};
  machine.to_device = {links.to_device_both, links.to_device.latency};
  return machine;
}

}  // namespace

DeviceKind cuda_device_kind() {
  DeviceKind kind;
  kind.name = "cuda";
  kind.description = "NVIDIA GPU: cuDNN and cuBLAS kernels, copies over pinned host memory";
  kind.kernels = &nn::cuda_kernels();
  kind.choose_kernels = [](const KernelRequest& request) -> const nn::KernelList& {
    return nn::cuda_kernels({request.tf32, request.nondeterministic});
  };
  kind.unavailable = why_no_cuda;
  kind.calibrate = [] {
    static const Machine machine = calibrated();  // takes a second; once a process
    return machine;
  };
  kind.prepare_thread = [](int) {};
  kind.default_threads = [] { return 1; };
  kind.make = [](const DeviceRequest&) -> std::unique_ptr<Device> {
    nn::load_cuda_kernels();
    return std::make_unique<CudaDevice>(CudaDeviceOptions{});
  };
  return kind;
}

}  // namespace tidepool::cli
