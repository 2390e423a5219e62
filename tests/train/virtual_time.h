// When the calls of a device begin and end on a virtual clock, beside what really runs.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/at.h"
#include "device/device.h"
#include "device/spill_options.h"

namespace tidepool::testing {

/// What copies take on the virtual clock; 0 bytes per second: as fast as within memory.
struct VirtualLinks {
  LinkSpeed to_host;
  LinkSpeed to_device;
  double write = 0;
  double read = 0;
};

class VirtualTime {
 public:
  explicit VirtualTime(const VirtualLinks& links) : links_(links) {}

  void open(const DeviceConfig& config) {
    for (const DeviceConfig::ArenaSize& arena : config.arenas) kinds_.push_back(arena.kind);
    end_.assign(config.streams.size(), Nanos{0});
    wait_ = end_;
  }

  /// The same work, which says its virtual times while it runs.
  Work launch(StreamId stream, const Work& work) {
    const Nanos start = begin(stream);
    end_[at(stream)] = start + time_of(work.label);
    calls_.push_back({work, start, end_[at(stream)]});
    Work timed = work;
    timed.context = &calls_.back();
    timed.run = [](void* context, std::int64_t argument, NativeStream native) {
      const Running scope(*static_cast<Call*>(context));
      scope.call.work.run(scope.call.work.context, argument, native);
    };
    return timed;
  }
  void copy(StreamId stream, SpaceId to, SpaceId from, Bytes bytes) {
    const Nanos time = time_of(to, from, bytes);
    end_[at(stream)] = begin(stream) + time;
    if (kinds_[at(to)] == SpaceKind::file) traffic_.written.time += time;
    if (kinds_[at(from)] == SpaceKind::file) traffic_.read.time += time;
  }

  void record(Device::EventId event, StreamId stream) {
    if (at(event) >= events_.size()) events_.resize(at(event) + 1);
    events_[at(event)] = begin(stream);
  }
  void wait(StreamId stream, Device::EventId event) {
    if (at(event) >= events_.size() || !events_[at(event)]) return;
    wait_[at(stream)] = std::max(wait_[at(stream)], *events_[at(event)]);
  }
  [[nodiscard]] Nanos of(Device::EventId event) const {
    return at(event) < events_.size() ? events_[at(event)].value_or(Nanos{0}) : Nanos{0};
  }
  /// Nothing is running any more.
  void synchronize() {
    calls_.clear();
    std::ranges::fill(wait_, latest());
  }
  /// Where work runs: when that began, and from then on when it ends.
  [[nodiscard]] Nanos now() const {
    if (running == nullptr) return latest();
    return std::exchange(running->asked, true) ? running->call.end : running->call.start;
  }
  /// Of the copies with the file.
  [[nodiscard]] FileTraffic timed(FileTraffic traffic) const {
    traffic.written.time = traffic_.written.time;
    traffic.read.time = traffic_.read.time;
    return traffic;
  }

 private:
  struct Call {
    Work work;
    Nanos start{};
    Nanos end{};
  };
  struct Running {
    explicit Running(const Call& c) : call(c) { running = this; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { running = nullptr; }
    const Call& call;
    bool asked = false;
  };
  static thread_local inline Running* running = nullptr;

  [[nodiscard]] Nanos begin(StreamId stream) const {
    return std::max(end_[at(stream)], wait_[at(stream)]);
  }
  [[nodiscard]] Nanos latest() const {
    Nanos latest{1};  // before that nothing has a time
    for (const Nanos end : end_) latest = std::max(latest, end);
    return latest;
  }
  static Nanos time_of(const WorkLabel& label) {
    if (label.kind == WorkLabel::Kind::host || label.op < 0) return Nanos{20'000};
    const auto drawn = static_cast<std::uint32_t>(label.op) * 2654435761U % 600;
    return Nanos{1000 * (200 + static_cast<Nanos::rep>(drawn) + 10 * label.algorithm)};
  }
  [[nodiscard]] Nanos time_of(SpaceId to, SpaceId from, Bytes bytes) const {
    constexpr double kWithinMemory = 10e9;
    LinkSpeed link;
    if (kinds_[at(to)] == SpaceKind::file) {
      link.bytes_per_second = links_.write;
    } else if (kinds_[at(from)] == SpaceKind::file) {
      link.bytes_per_second = links_.read;
    } else if (kinds_[at(from)] == SpaceKind::device && kinds_[at(to)] == SpaceKind::host) {
      link = links_.to_host;
    } else if (kinds_[at(from)] == SpaceKind::host && kinds_[at(to)] == SpaceKind::device) {
      link = links_.to_device;
    }
    const double speed = link.bytes_per_second > 0 ? link.bytes_per_second : kWithinMemory;
    return link.latency + from_seconds(static_cast<double>(bytes) / speed);
  }

  VirtualLinks links_;
  std::vector<SpaceKind> kinds_;  ///< by SpaceId
  std::vector<Nanos> end_;        ///< of the last call on each stream
  std::vector<Nanos> wait_;       ///< earliest start of the next one, from waits
  std::vector<std::optional<Nanos>> events_;
  std::deque<Call> calls_;  ///< that may be running
  FileTraffic traffic_;
};

}  // namespace tidepool::testing
