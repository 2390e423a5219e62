#include "device/cuda/links.h"

#include <algorithm>
#include <array>

#include "device/cuda/cuda_device.h"

namespace tidepool {
namespace {

/// Large enough to hide the start of a copy, small enough to measure in a tenth of a second.
constexpr Bytes kLarge = 256 * kMiB;
constexpr int kLargeCopies = 4;
constexpr Bytes kSmall = 4 * kKiB;
constexpr int kSmallCopies = 64;

/// The two streams: out and in. Each has its own half of both arenas.
class Links {
 public:
  Links() : device_(CudaDeviceOptions{}) {
    device_.open({2 * kLarge, 2 * kLarge, {StreamKind::copy, StreamKind::copy}});
    for (auto& events : events_) {
      events = {device_.create_timed_event(), device_.create_timed_event()};
    }
    run(kLarge, 1, true, true);  // first touches
  }

  /// Time of each direction for so many copies; 0 when it did not run.
  struct Times {
    Nanos to_host{}, to_device{};
  };
  Times run(Bytes bytes, int count, bool out, bool in) {
    device_.synchronize();
    if (out) device_.record(events_[0][0], 0);
    if (in) device_.record(events_[1][0], 1);
    for (int i = 0; i < count; ++i) {
      if (out) {
        device_.copy(0, device_.host_arena(), device_.arena(), bytes, CopyRoute::to_host);
      }
      if (in) {
        device_.copy(1, device_.arena() + kLarge, device_.host_arena() + kLarge, bytes,
                     CopyRoute::to_device);
      }
    }
    if (out) device_.record(events_[0][1], 0);
    if (in) device_.record(events_[1][1], 1);
    Times times;
    if (out) times.to_host = between(0);
    if (in) times.to_device = between(1);
    return times;
  }

 private:
  Nanos between(std::size_t stream) {
    const Nanos end = device_.synchronize(events_[stream][1]);
    return end - device_.synchronize(events_[stream][0]);
  }

  CudaDevice device_;
  std::array<std::array<Device::EventId, 2>, 2> events_{};
};

double speed(Nanos time, int copies) {
  return static_cast<double>(kLarge) * copies / std::max(to_seconds(time), 1e-9);
}

}  // namespace

LinkMeasurement measure_links() {
  Links links;
  LinkMeasurement result;
  result.to_host.bytes_per_second =
      speed(links.run(kLarge, kLargeCopies, true, false).to_host, kLargeCopies);
  result.to_device.bytes_per_second =
      speed(links.run(kLarge, kLargeCopies, false, true).to_device, kLargeCopies);
  const Links::Times both = links.run(kLarge, kLargeCopies, true, true);
  result.to_host_both = speed(both.to_host, kLargeCopies);
  result.to_device_both = speed(both.to_device, kLargeCopies);
  result.to_host.latency = links.run(kSmall, kSmallCopies, true, false).to_host / kSmallCopies;
  result.to_device.latency = links.run(kSmall, kSmallCopies, false, true).to_device / kSmallCopies;
  return result;
}

}  // namespace tidepool
