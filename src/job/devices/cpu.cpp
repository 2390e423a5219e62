#include "job/devices/cpu.h"

#include "device/file/disk_calibration.h"

namespace tidepool {

CpuDeviceOptions cpu_options(const DeviceRequest& request) {
  CpuDeviceOptions options;
  options.threads = request.threads;
  options.to_host = {request.to_host.bytes_per_second, request.to_host.latency};
  options.to_device = {request.to_device.bytes_per_second, request.to_device.latency};
  options.bus_to_host = request.bus_to_host;
  options.bus_to_device = request.bus_to_device;
  if (!request.spill.folder.empty()) options.spill = request.spill;
  return options;
}

DeviceKind cpu_device_kind() {
  DeviceKind kind;
  kind.name = "cpu";
  kind.description = "emulated accelerator: oneDNN kernels, copies paced to a stated link speed";
  kind.kernels = nn::cpu_kernels;
  kind.default_threads = [] { return default_compute_threads(); };
  kind.spills_arenas = true;
  kind.measure_disk = calibrate;
  kind.make = [](const DeviceRequest& request) -> std::unique_ptr<Device> {
    return std::make_unique<CpuDevice>(cpu_options(request));
  };
  return kind;
}

}  // namespace tidepool
