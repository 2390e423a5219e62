#include "device/cuda/links.h"

#include <algorithm>
#include <array>

#include "device/cuda/cuda_device.h"

namespace tidepool {
namespace {

/// Bytes of a measurement: large enough to hide its start, small enough for a tenth of a second.
constexpr Bytes kAll = kGiB;
constexpr int kMostCopies = 4096;
constexpr Bytes kSmall = 4 * kKiB;
constexpr int kSmallCopies = 64;

/// The two streams: out and in. Each has its own half of both arenas.
class Links {
 public:
  explicit Links(Bytes arena) : device_(CudaDeviceOptions{}), half_(arena / 2) {
    device_.open({arena, arena, {StreamKind::copy, StreamKind::copy}});
    for (auto& events : events_) {
      events = {device_.create_timed_event(), device_.create_timed_event()};
    }
    run(half_, 1, true, true);  // first touches
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
        device_.copy(0, {1, 0}, {0, 0}, bytes);
      }
      if (in) {
        device_.copy(1, {0, half_}, {1, half_}, bytes);
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
  Bytes half_;
  std::array<std::array<Device::EventId, 2>, 2> events_{};
};

/// Copies that follow each other take their bytes' time and the start of each.
double speed(Nanos time, Bytes bytes, int copies, Nanos latency) {
  const Nanos moving = std::max(time - copies * latency, time / 8);
  return static_cast<double>(bytes) * copies / std::max(to_seconds(moving), 1e-9);
}

}  // namespace

LinkMeasurement measure_links(Bytes device, Bytes host) {
  const Bytes arena = std::clamp(std::min(device, host), 4 * kSmall, kMostForLinks);
  const Bytes large = arena / 2;
  const int copies = static_cast<int>(std::clamp<Bytes>(kAll / large, 4, kMostCopies));
  Links links(arena);
  LinkMeasurement result;
  result.to_host.latency = links.run(kSmall, kSmallCopies, true, false).to_host / kSmallCopies;
  result.to_device.latency = links.run(kSmall, kSmallCopies, false, true).to_device / kSmallCopies;
  const auto out = [&](Nanos time) { return speed(time, large, copies, result.to_host.latency); };
  const auto in = [&](Nanos time) { return speed(time, large, copies, result.to_device.latency); };
  result.to_host.bytes_per_second = out(links.run(large, copies, true, false).to_host);
  result.to_device.bytes_per_second = in(links.run(large, copies, false, true).to_device);
  const Links::Times both = links.run(large, copies, true, true);
  result.to_host_both = out(both.to_host);
  result.to_device_both = in(both.to_device);
  return result;
}

}  // namespace tidepool
