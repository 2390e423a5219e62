#include "support/fake_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/at.h"

namespace tidepool {
namespace {

bool conflict(const std::vector<TouchedRange>& a, const std::vector<TouchedRange>& b) {
  for (const TouchedRange& x : a) {
    for (const TouchedRange& y : b) {
      if (!x.write && !y.write) continue;
      if (x.address < y.address + y.bytes && y.address < x.address + x.bytes) return true;
    }
  }
  return false;
}

}  // namespace

void FakeDevice::open(const DeviceConfig& config) {
  faults_.open(config);
  for (const auto& arena : config.arenas) {
    arenas_.emplace_back(static_cast<std::size_t>(arena.bytes), std::byte{0xcd});
    has_address_.push_back(arena.kind != SpaceKind::file);
  }
  stream_end_.assign(config.streams.size(), Nanos{0});
  stream_wait_.assign(config.streams.size(), Nanos{0});
}

void FakeDevice::enqueue(StreamId stream, Nanos duration, Command command) {
  command.start = std::max(stream_end_[at(stream)], stream_wait_[at(stream)]) + command.fault.late;
  command.end = command.start + duration;
  stream_end_[at(stream)] = command.end;
  command.record = records_.size();
  records_.push_back({stream, command.start, command.end});
  pending_.push_back(std::move(command));
}

void FakeDevice::discard(Location place, Bytes bytes) {
  std::fill_n(bytes_at(place), bytes, std::byte{0xcd});
}

void FakeDevice::launch(StreamId stream, const Work& work) {
  Command command;
  command.work = work;
  command.fault = faults_.launch();
  command.ranges.assign(work.label.ranges.begin(), work.label.ranges.end());
  enqueue(stream, script_.op_time(work.label), std::move(command));
}

void FakeDevice::copy(StreamId stream, Location to, Location from, Bytes bytes) {
  const CopyRoute route{from.space, to.space};
  const Nanos time = script_.copy_time(route, bytes);
  if (!has_address_[at(from.space)] || !has_address_[at(to.space)]) {
    bytes = align_up(bytes, alignment_);
    require_block(from, bytes);
    require_block(to, bytes);
  }
  Command command;
  command.is_copy = true;
  command.fault = faults_.copy(route);
  command.route = route;
  command.to = bytes_at(to);
  command.from = bytes_at(from);
  command.bytes = bytes;
  command.ranges = {{command.from, bytes, false}, {command.to, bytes, true}};
  enqueue(stream, time, std::move(command));
}

void FakeDevice::require_block(Location place, Bytes bytes) const {
  const auto end = static_cast<Bytes>(arenas_[at(place.space)].size());
  if (place.offset % alignment_ == 0 && place.offset + bytes <= end) return;
  throw DeviceError(fmt::format(
      "a copy with a file touches [{}, {}) of space {}, which has {} B, in blocks of {} B",
      place.offset, place.offset + bytes, place.space, end, alignment_));
}

Device::EventId FakeDevice::create_event(StreamId /*stream*/) {
  events_.emplace_back();
  return static_cast<EventId>(events_.size()) - 1;
}

void FakeDevice::record(EventId event, StreamId stream) {
  events_[at(event)] = std::max(stream_end_[at(stream)], stream_wait_[at(stream)]);
}

void FakeDevice::wait(StreamId stream, EventId event) {
  if (events_[at(event)]) {
    stream_wait_[at(stream)] = std::max(stream_wait_[at(stream)], *events_[at(event)]);
  }
}

/// Executes nothing: work issued later may still start earlier on the virtual clock.
Nanos FakeDevice::synchronize(EventId event) { return events_[at(event)].value_or(Nanos{0}); }

/// Executes everything in the order of start times; at equal times in the order of issue. What is
/// issued afterwards starts after all of it.
void FakeDevice::synchronize() {
  std::stable_sort(pending_.begin(), pending_.end(),
                   [](const Command& a, const Command& b) { return a.start < b.start; });
  const std::vector<Command> commands = std::move(pending_);
  pending_.clear();
  for (const Command& command : commands) execute(command);
  std::fill(stream_wait_.begin(), stream_wait_.end(), now());
}

Nanos FakeDevice::now() {
  return stream_end_.empty() ? Nanos{0} : *std::max_element(stream_end_.begin(), stream_end_.end());
}

void FakeDevice::execute(const Command& command) {
  std::erase_if(active_, [&](const Command& c) { return c.end <= command.start; });
  for (const Command& other : active_) {
    if (command.end > command.start && conflict(command.ranges, other.ranges)) {
      races_.push_back(fmt::format("records {} and {} overlap in time and conflict", other.record,
                                   command.record));
    }
  }
  if (command.is_copy) {
    if (command.fault.fails) FaultInjector::throw_copy(command.route, command.bytes);
    std::memcpy(command.to, command.from, static_cast<std::size_t>(command.bytes));
  } else {
    if (command.fault.fails) FaultInjector::throw_launch();
    command.work.run(command.work.context, command.work.argument, nullptr);
  }
  active_.push_back(command);
}

}  // namespace tidepool
