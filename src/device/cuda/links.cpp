#include "device/cuda/links.h"

#include <algorithm>
#include <array>

#include "base/at.h"
#include "device/cuda/cuda_device.h"

namespace tidepool {
namespace {

/// Bytes of a measurement, of all GPUs together: large enough to hide its start, small enough for a
/// tenth of a second.
constexpr Bytes kAll = kGiB;
constexpr int kMostCopies = 4096;
constexpr Bytes kSmall = 4 * kKiB;
constexpr int kSmallCopies = 64;

/// Two streams of each GPU: out and in. Each has its own half of the GPU's arena, and of the GPU's
/// part of the host's.
class Links {
 public:
  Links(Bytes arena, int gpus) : device_(CudaDeviceOptions{}), gpus_(gpus), half_(arena / 2) {
    DeviceConfig config{arena, gpus * arena, {}};
    for (SpaceId g = 0; g < gpus; ++g) {
      if (g > 0) config.arenas.insert(config.arenas.begin(), config.arenas[0]);
      config.streams.insert(config.streams.end(), 2, {StreamKind::copy, g});
    }
    device_.open(config);
    for (StreamId s = 0; s < 2 * gpus; ++s) {
      events_.push_back({device_.create_timed_event(s), device_.create_timed_event(s)});
    }
    run(0, gpus, half_, 1, true, true);  // first touches
  }

  /// Time of each direction for so many copies; 0 when it did not run.
  struct Times {
    Nanos to_host{}, to_device{};
  };
  /// Of `count` GPUs from this one on, at the same time.
  std::vector<Times> run(SpaceId first, int count, Bytes bytes, int copies, bool out, bool in) {
    device_.synchronize();
    const SpaceId host = gpus_;
    mark(first, count, 0, out, in);
    for (int i = 0; i < copies; ++i) {
      for (SpaceId g = first; g < first + count; ++g) {
        const Bytes part = g * 2 * half_;  // of the host's arena
        if (out) device_.copy(2 * g, {host, part}, {g, 0}, bytes);
        if (in) device_.copy(2 * g + 1, {g, half_}, {host, part + half_}, bytes);
      }
    }
    mark(first, count, 1, out, in);
    std::vector<Times> times;
    for (SpaceId g = first; g < first + count; ++g) {
      times.push_back({out ? between(2 * g) : Nanos{0}, in ? between(2 * g + 1) : Nanos{0}});
    }
    return times;
  }

 private:
  void mark(SpaceId first, int count, std::size_t which, bool out, bool in) {
    for (SpaceId g = first; g < first + count; ++g) {
      if (out) device_.record(events_[at(2 * g)][which], 2 * g);
      if (in) device_.record(events_[at(2 * g + 1)][which], 2 * g + 1);
    }
  }

  Nanos between(StreamId stream) {
    const Nanos end = device_.synchronize(events_[at(stream)][1]);
    return end - device_.synchronize(events_[at(stream)][0]);
  }

  CudaDevice device_;
  int gpus_;
  Bytes half_;
  std::vector<std::array<Device::EventId, 2>> events_;
};

/// Copies that follow each other take their bytes' time and the start of each.
double speed(Nanos time, Bytes bytes, int copies, Nanos latency) {
  const Nanos moving = std::max(time - copies * latency, time / 8);
  return static_cast<double>(bytes) * copies / std::max(to_seconds(moving), 1e-9);
}

LinkMeasurement measure_one(Links& links, SpaceId gpu, Bytes large, int copies) {
  LinkMeasurement result;
  const auto small = [&](bool out) {
    const Links::Times times = links.run(gpu, 1, kSmall, kSmallCopies, out, !out)[0];
    return (times.to_host + times.to_device) / kSmallCopies;
  };
  result.to_host.latency = small(true);
  result.to_device.latency = small(false);
  const auto out = [&](Nanos time) { return speed(time, large, copies, result.to_host.latency); };
  const auto in = [&](Nanos time) { return speed(time, large, copies, result.to_device.latency); };
  result.to_host.bytes_per_second = out(links.run(gpu, 1, large, copies, true, false)[0].to_host);
  result.to_device.bytes_per_second =
      in(links.run(gpu, 1, large, copies, false, true)[0].to_device);
  const Links::Times both = links.run(gpu, 1, large, copies, true, true)[0];
  result.to_host_all = result.to_host_both = out(both.to_host);
  result.to_device_all = result.to_device_both = in(both.to_device);
  return result;
}

LinkMeasurement slowest(const LinkMeasurement& a, const LinkMeasurement& b) {
  const auto worse = [](const auto& x, const auto& y) {
    return LinkMeasurement::Direction{std::min(x.bytes_per_second, y.bytes_per_second),
                                      std::max(x.latency, y.latency)};
  };
  LinkMeasurement result = a;
  result.to_host = worse(a.to_host, b.to_host);
  result.to_device = worse(a.to_device, b.to_device);
  result.to_host_both = std::min(a.to_host_both, b.to_host_both);
  result.to_device_both = std::min(a.to_device_both, b.to_device_both);
  return result;
}

}  // namespace

LinkMeasurement measure_links(Bytes device, Bytes host, int gpus) {
  const Bytes arena = std::clamp(std::min(device, host / gpus), 4 * kSmall, kMostForLinks);
  const Bytes large = arena / 2;
  const int copies =
      static_cast<int>(std::clamp<Bytes>(kAll / (large * gpus), 4, kMostCopies / gpus));
  Links links(arena, gpus);
  LinkMeasurement result = measure_one(links, 0, large, copies);
  if (gpus == 1) return result;
  for (SpaceId g = 1; g < gpus; ++g) {
    result = slowest(result, measure_one(links, g, large, copies));
  }
  result.to_host_all = result.to_device_all = 0;
  for (const Links::Times& times : links.run(0, gpus, large, copies, true, true)) {
    result.to_host_all += speed(times.to_host, large, copies, result.to_host.latency);
    result.to_device_all += speed(times.to_device, large, copies, result.to_device.latency);
  }
  return result;
}

}  // namespace tidepool
