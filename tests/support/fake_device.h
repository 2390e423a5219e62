// FakeDevice: runs work on a virtual clock with scripted speeds. Everything is really executed (in
// the order of virtual start times), so wrong schedules give wrong bytes; overlapping conflicting
// work is reported as a race.
#pragma once

#include <functional>
#include <optional>

#include "device/device.h"
#include "device/faults.h"

namespace tidepool {

struct FakeScript {
  /// Duration of a launch. Called once a launch, in the order of calls.
  std::function<Nanos(const WorkLabel&)> op_time = [](const WorkLabel&) { return Nanos{0}; };
  std::function<Nanos(CopyRoute, Bytes)> copy_time = [](CopyRoute, Bytes) { return Nanos{0}; };
  FaultPlan faults;
};

/// What ran when, in the order of calls.
struct FakeRecord {
  StreamId stream = 0;
  Nanos start{};
  Nanos end{};
};

class FakeDevice : public Device {
 public:
  explicit FakeDevice(FakeScript script, Bytes alignment = 64)
      : script_(std::move(script)), faults_(script_.faults), alignment_(alignment) {}

  [[nodiscard]] std::string fingerprint() const override { return "fake"; }
  [[nodiscard]] Bytes alignment() const override { return alignment_; }
  void open(const DeviceConfig& config) override;
  using Device::arena;
  using Device::create_event;
  [[nodiscard]] std::byte* arena(SpaceId space) override {
    return has_address_[static_cast<std::size_t>(space)] ? bytes_at({space, 0}) : nullptr;
  }
  [[nodiscard]] bool wants_ranges() const override { return true; }
  void launch(StreamId stream, const Work& work) override;
  void copy(StreamId stream, Location to, Location from, Bytes bytes) override;
  /// Overwrites all of the range: what should have stayed is seen to be gone.
  void discard(Location place, Bytes bytes) override;
  EventId create_event(StreamId stream) override;
  void record(EventId event, StreamId stream) override;
  void wait(StreamId stream, EventId event) override;
  Nanos synchronize(EventId event) override;
  void synchronize() override;
  [[nodiscard]] Nanos now() override;

  /// Every launch and copy so far.
  [[nodiscard]] const std::vector<FakeRecord>& records() const { return records_; }
  /// Descriptions of conflicting work that overlapped in time.
  [[nodiscard]] const std::vector<std::string>& races() const { return races_; }

 private:
  struct Command {
    std::size_t record = 0;
    Nanos start{};
    Nanos end{};
    bool is_copy = false;
    FaultInjector::Fault fault;
    CopyRoute route = CopyRoute::on_host;
    Work work;
    std::vector<TouchedRange> ranges;
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    Bytes bytes = 0;
  };

  [[nodiscard]] std::byte* bytes_at(Location at) {
    return arenas_[static_cast<std::size_t>(at.space)].data() + at.offset;
  }
  /// Copies with a file are of whole blocks, as long as the alignment: those behind the last byte
  /// asked for are copied too, as direct transfers do.
  void require_block(Location place, Bytes bytes) const;
  void enqueue(StreamId stream, Nanos duration, Command command);
  void execute(const Command& command);

  FakeScript script_;
  FaultInjector faults_;
  Bytes alignment_;
  std::vector<std::vector<std::byte>> arenas_;
  std::vector<bool> has_address_;   ///< by SpaceId; those of files have none
  std::vector<Nanos> stream_end_;   ///< end of the last command on each stream
  std::vector<Nanos> stream_wait_;  ///< earliest start of the next one, from waits
  std::vector<std::optional<Nanos>> events_;
  std::vector<Command> pending_;
  std::vector<Command> active_;  ///< executed, may still run at the virtual time reached
  std::vector<FakeRecord> records_;
  std::vector<std::string> races_;
};

}  // namespace tidepool
