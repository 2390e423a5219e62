#include "train/watched_device.h"

#include <algorithm>

#include "job/device_kind.h"
#include "job/devices/cpu.h"

namespace tidepool {
namespace {

using testing::OpenedArenas;

std::vector<OpenedArenas> opened;
Bytes open_now = 0;
Bytes most_open = 0;
double disk_pace = 0;
double disk_speed_said = 0;
double link_part = 1;

class WatchedDevice : public CpuDevice {
 public:
  using CpuDevice::CpuDevice;
  ~WatchedDevice() override { open_now -= bytes_; }
  void open(const DeviceConfig& config) override {
    OpenedArenas arenas;
    for (const DeviceConfig::ArenaSize& arena : config.arenas) {
      (arena.kind == SpaceKind::device ? arenas.device
       : arena.kind == SpaceKind::host ? arenas.host
                                       : arenas.file) = arena.bytes;
    }
    opened.push_back(arenas);
    bytes_ = config.arenas.at(0).bytes;
    open_now += bytes_;
    most_open = std::max(most_open, open_now);
    CpuDevice::open(config);
  }
  FileTraffic file_traffic() override {
    FileTraffic traffic = CpuDevice::file_traffic();
    if (said_ <= 0) return traffic;
    for (FileTraffic::Direction* way : {&traffic.written, &traffic.read}) {
      way->time = from_seconds(static_cast<double>(way->bytes) / said_);
    }
    return traffic;
  }

 private:
  Bytes bytes_ = 0;
  double said_ = disk_speed_said;
};

}  // namespace

DeviceKind watched_device_kind() {
  DeviceKind kind = cpu_device_kind();
  kind.name = "watched";
  kind.make = [](const DeviceRequest& request) -> std::unique_ptr<Device> {
    CpuDeviceOptions options = cpu_options(request);
    options.to_host.bytes_per_second *= link_part;
    options.to_device.bytes_per_second *= link_part;
    if (disk_pace > 0 && options.spill)
      options.spill->write_speed = options.spill->read_speed = disk_pace;
    return std::make_unique<WatchedDevice>(options);
  };
  return kind;
}

namespace testing {

std::vector<OpenedArenas> opened_devices() { return opened; }
void forget_opened() {
  opened.clear();
  most_open = open_now;
}
Bytes most_open_at_once() { return most_open; }
void pace_links(double part) { link_part = part; }
void pace_disk(double bytes_per_second) { disk_pace = bytes_per_second; }
void say_disk_speed(double bytes_per_second) { disk_speed_said = bytes_per_second; }

}  // namespace testing
}  // namespace tidepool
