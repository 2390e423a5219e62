#include "train/watched_device.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "job/device_kind.h"
#include "job/devices/cpu.h"
#include "train/virtual_time.h"

namespace tidepool {
namespace {

using testing::OpenedArenas;

std::vector<OpenedArenas> opened;
Bytes open_now = 0;
Bytes most_open = 0;
double disk_pace = 0;
double disk_speed_said = 0;
double link_part = 1;
bool on_virtual_time = false;

class WatchedDevice : public CpuDevice {
 public:
  WatchedDevice(const CpuDeviceOptions& options, std::optional<testing::VirtualTime> time)
      : CpuDevice(options), time_(std::move(time)) {}
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
    if (time_) time_->open(config);
    CpuDevice::open(config);
  }
  FileTraffic file_traffic() override {
    FileTraffic traffic = CpuDevice::file_traffic();
    if (time_) traffic = time_->timed(traffic);
    if (said_ <= 0) return traffic;
    for (FileTraffic::Direction* way : {&traffic.written, &traffic.read}) {
      way->time = from_seconds(static_cast<double>(way->bytes) / said_);
    }
    return traffic;
  }
  void launch(StreamId stream, const Work& work) override {
    CpuDevice::launch(stream, time_ ? time_->launch(stream, work) : work);
  }
  void copy(StreamId stream, Location to, Location from, Bytes bytes) override {
    if (time_) time_->copy(stream, to.space, from.space, bytes);
    CpuDevice::copy(stream, to, from, bytes);
  }
  void record(EventId event, StreamId stream) override {
    if (time_) time_->record(event, stream);
    CpuDevice::record(event, stream);
  }
  void wait(StreamId stream, EventId event) override {
    if (time_) time_->wait(stream, event);
    CpuDevice::wait(stream, event);
  }
  Nanos synchronize(EventId event) override {
    const Nanos real = CpuDevice::synchronize(event);
    return time_ ? time_->of(event) : real;
  }
  void synchronize() override {
    CpuDevice::synchronize();
    if (time_) time_->synchronize();
  }
  Nanos now() override { return time_ ? time_->now() : CpuDevice::now(); }

 private:
  Bytes bytes_ = 0;
  double said_ = disk_speed_said;
  std::optional<testing::VirtualTime> time_;  ///< none: the clock of the machine
};

/// What paces copies of these options, which are as fast as they go from here on.
testing::VirtualTime virtual_time(CpuDeviceOptions& options) {
  testing::VirtualLinks links;
  links.to_host = {options.to_host.bytes_per_second, options.to_host.latency};
  links.to_device = {options.to_device.bytes_per_second, options.to_device.latency};
  options.to_host = options.to_device = {};
  options.bus_to_host = options.bus_to_device = 0;
  if (options.spill) {
    links.write = std::exchange(options.spill->write_speed, 0);
    links.read = std::exchange(options.spill->read_speed, 0);
  }
  return testing::VirtualTime(links);
}

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
    std::optional<testing::VirtualTime> time;
    if (on_virtual_time) time.emplace(virtual_time(options));
    return std::make_unique<WatchedDevice>(options, std::move(time));
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
void keep_virtual_time(bool yes) { on_virtual_time = yes; }
void pace_links(double part) { link_part = part; }
void pace_disk(double bytes_per_second) { disk_pace = bytes_per_second; }
void say_disk_speed(double bytes_per_second) { disk_speed_said = bytes_per_second; }

}  // namespace testing
}  // namespace tidepool
