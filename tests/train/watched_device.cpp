#include "train/watched_device.h"

#include "device/cpu/cpu_device.h"
#include "train/device_kind.h"

namespace tidepool {

DeviceKind cpu_device_kind();

namespace {

std::vector<testing::OpenedArenas> opened;

class WatchedDevice : public CpuDevice {
 public:
  using CpuDevice::CpuDevice;
  void open(const DeviceConfig& config) override {
    opened.push_back({config.arenas.at(0).bytes, config.arenas.at(1).bytes});
    CpuDevice::open(config);
  }
};

}  // namespace

DeviceKind watched_device_kind() {
  DeviceKind kind = cpu_device_kind();
  kind.name = "watched";
  kind.make = [](const DeviceRequest& request) -> std::unique_ptr<Device> {
    CpuDeviceOptions options;
    options.threads = request.threads;
    options.to_host = {request.to_host.bytes_per_second, request.to_host.latency};
    options.to_device = {request.to_device.bytes_per_second, request.to_device.latency};
    return std::make_unique<WatchedDevice>(options);
  };
  return kind;
}

namespace testing {

std::vector<OpenedArenas> opened_devices() { return opened; }
void forget_opened() { opened.clear(); }

}  // namespace testing
}  // namespace tidepool
