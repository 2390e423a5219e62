#include "lower/boundary_schedules.h"

#include <algorithm>

#include "base/at.h"

namespace tidepool {
namespace {

class BoundaryWriter {
 public:
  BoundaryWriter(const BoundaryStreams& streams, Plan& plan) : streams_(streams), plan_(plan) {}

  void write() {
    const Bytes staging = end_of_host_values();
    const std::vector<PlacementId> boundary = plan_.boundary;
    for (const PlacementId id : boundary) {
      const Placement value = plan_.placements[at(id)];
      if (value.space == plan_.host()) {
        push(plan_.entry, host_call(InstructionKind::load, id), {});
        push(plan_.exit, host_call(InstructionKind::store, id), {});
        continue;
      }
      const auto staged = static_cast<PlacementId>(plan_.placements.size());
      plan_.placements.push_back({value.tensor, plan_.host(), staging, value.bytes});
      plan_.host_bytes() = std::max(plan_.host_bytes(), staging + value.bytes);

      push(plan_.entry, host_call(InstructionKind::load, staged), last(plan_.entry, streams_.in));
      push(plan_.entry, copy(streams_.in, staged, id), last(plan_.entry, streams_.host));
      push(plan_.exit, copy(streams_.out, id, staged), last(plan_.exit, streams_.host));
      push(plan_.exit, host_call(InstructionKind::store, staged), last(plan_.exit, streams_.out));
    }
  }

 private:
  [[nodiscard]] Bytes end_of_host_values() const {
    Bytes end = 0;
    for (const PlacementId id : plan_.boundary) {
      const Placement& p = plan_.placements[at(id)];
      if (p.space != plan_.host()) continue;
      end = std::max(end, align_up(p.offset + p.bytes, plan_.arenas[at(plan_.host())].alignment));
    }
    return end;
  }

  [[nodiscard]] Instruction copy(StreamId stream, PlacementId from, PlacementId to) const {
    Instruction out;
    out.kind = InstructionKind::copy;
    out.stream = stream;
    out.from = from;
    out.to = to;
    out.bytes = plan_.placements[at(from)].bytes;
    return out;
  }

  [[nodiscard]] Instruction host_call(InstructionKind kind, PlacementId value) const {
    Instruction out;
    out.kind = kind;
    out.stream = streams_.host;
    (kind == InstructionKind::load ? out.to : out.from) = value;
    out.bytes = plan_.placements[at(value)].bytes;
    return out;
  }

  /// A wait for the last instruction on a stream so far, if there is one.
  static std::vector<Wait> last(const Schedule& schedule, StreamId stream) {
    for (std::size_t i = schedule.instructions.size(); i > 0; --i) {
      if (schedule.instructions[i - 1].stream == stream) {
        return {{stream, static_cast<std::int32_t>(i - 1), 0}};
      }
    }
    return {};
  }

  static void push(Schedule& schedule, Instruction instruction, std::vector<Wait> waits) {
    instruction.waits = std::move(waits);
    schedule.instructions.push_back(std::move(instruction));
  }

  const BoundaryStreams& streams_;
  Plan& plan_;
};

}  // namespace

void add_boundary_schedules(const BoundaryStreams& streams, Plan& plan) {
  BoundaryWriter(streams, plan).write();
}

}  // namespace tidepool
