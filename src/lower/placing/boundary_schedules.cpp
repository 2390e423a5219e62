#include "lower/placing/boundary_schedules.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <utility>

#include "base/at.h"

namespace tidepool {
namespace {

class BoundaryWriter {
 public:
  BoundaryWriter(const BoundaryStreams& streams, Plan& plan) : streams_(streams), plan_(plan) {
    for (const Schedule* schedule : {&plan.entry, &plan.exit}) {
      for (std::size_t i = 0; i < schedule->instructions.size(); ++i) note(*schedule, i);
    }
  }

  void write() {
    const std::vector<PlacementId> boundary = plan_.boundary;
    const auto each_in = [&](SpaceKind kind, auto&& see) {
      for (const PlacementId id : boundary) {
        if (plan_.kind_of(id) == kind) see(id);
      }
    };
    if (streams_.to_file != kNone || streams_.from_file != kNone) {
      write_behind_host(each_in);
      return;
    }
    staging_ = end_of_host_values();
    each_in(SpaceKind::host, [&](PlacementId id) {
      push(plan_.entry, host_call(InstructionKind::load, id), {});
      push(plan_.exit, host_call(InstructionKind::store, id), {});
    });
    each_in(SpaceKind::file, [&](PlacementId id) { enter_file(id); });
    each_in(SpaceKind::device, [&](PlacementId id) { stage(id); });
    each_in(SpaceKind::file, [&](PlacementId id) { leave_file(id); });
  }

 private:
  /// With a file behind the host.
  template <class Each>
  void write_behind_host(Each&& each_in) {
    each_in(SpaceKind::host,
            [&](PlacementId id) { push(plan_.exit, host_call(InstructionKind::store, id), {}); });
    each_in(SpaceKind::file, [&](PlacementId id) {
      const PlacementId staged = staged_in(plan_.host(), 0, id);
      load(staged);
      push_copy(plan_.entry, streams_.to_file, staged, id, {streams_.host});
      push_copy(plan_.exit, streams_.from_file, id, staged, {streams_.host});
      store(staged, streams_.from_file);
    });
    each_in(SpaceKind::device, [&](PlacementId id) {
      const PlacementId staged = staged_in(plan_.host(), 0, id);
      load(staged);
      push_copy(plan_.entry, streams_.in, staged, id, {streams_.host});
      push_copy(plan_.exit, streams_.out, id, staged, {streams_.host});
      store(staged, streams_.out);
    });
    each_in(SpaceKind::host, [&](PlacementId id) { load(id); });
  }

  [[nodiscard]] Bytes end_of_host_values() const {
    Bytes end = 0;
    for (const PlacementId id : plan_.boundary) {
      const Placement& p = plan_.placements[at(id)];
      if (p.space != plan_.host()) continue;
      end = std::max(end, align_up(p.offset + p.bytes, plan_.arenas[at(plan_.host())].alignment));
    }
    return end;
  }

  /// A place for this value that only entry or exit uses.
  PlacementId staged_in(SpaceId space, Bytes offset, PlacementId id) {
    const Placement value = plan_.placements[at(id)];
    Arena& arena = plan_.arenas[at(space)];
    arena.bytes = std::max(arena.bytes, offset + rounded(value.bytes));
    plan_.placements.push_back({value.tensor, space, offset, value.bytes});
    return static_cast<PlacementId>(plan_.placements.size()) - 1;
  }

  /// Copies with a file are of whole blocks.
  [[nodiscard]] Bytes rounded(Bytes bytes) const {
    const Arena& last = plan_.arenas.back();
    return last.kind == SpaceKind::file ? align_up(bytes, last.alignment) : bytes;
  }

  void stage(PlacementId id) {
    const PlacementId staged = staged_in(plan_.host(), staging_, id);
    load(staged);
    push_copy(plan_.entry, streams_.in, staged, id, {streams_.host, streams_.out});
    push_copy(plan_.exit, streams_.out, id, staged, {streams_.host});
    store(staged, streams_.out);
  }

  void enter_file(PlacementId id) {
    const PlacementId staged = staged_in(plan_.host(), staging_, id);
    const PlacementId passing = staged_in(0, 0, id);
    load(staged);
    push_copy(plan_.entry, streams_.in, staged, passing, {streams_.host, streams_.out});
    push_copy(plan_.entry, streams_.out, passing, id, {streams_.in});
  }

  void leave_file(PlacementId id) {
    const PlacementId staged = staged_in(plan_.host(), staging_, id);
    const PlacementId passing = staged_in(0, 0, id);
    push_copy(plan_.exit, streams_.in, id, passing, {streams_.out});
    push_copy(plan_.exit, streams_.out, passing, staged, {streams_.host, streams_.in});
    store(staged, streams_.out);
  }

  void load(PlacementId staged) {
    push(plan_.entry, host_call(InstructionKind::load, staged), {streams_.in, streams_.to_file});
  }
  void store(PlacementId staged, StreamId copies) {
    push(plan_.exit, host_call(InstructionKind::store, staged), {copies});
  }
  void push_copy(Schedule& schedule, StreamId stream, PlacementId from, PlacementId to,
                 std::initializer_list<StreamId> after) {
    push(schedule, copy(stream, from, to), after);
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

  /// Behind the last instructions so far on these streams, where there are any.
  void push(Schedule& schedule, Instruction instruction, std::initializer_list<StreamId> after) {
    const auto& last = last_[&schedule == &plan_.exit];
    for (const StreamId stream : after) {
      if (stream == instruction.stream) continue;
      const auto found = last.find(stream);
      if (found == last.end()) continue;
      instruction.waits.push_back({stream, static_cast<std::int32_t>(found->second), 0});
    }
    schedule.instructions.push_back(std::move(instruction));
    note(schedule, schedule.instructions.size() - 1);
  }

  void note(const Schedule& schedule, std::size_t i) {
    last_[&schedule == &plan_.exit][schedule.instructions[i].stream] = i;
  }

  const BoundaryStreams& streams_;
  Plan& plan_;
  /// Of entry and of exit: the last instruction of each stream.
  std::array<std::map<StreamId, std::size_t>, 2> last_;
  Bytes staging_ = 0;  ///< on the host
};

}  // namespace

void add_boundary_schedules(const BoundaryStreams& streams, Plan& plan) {
  BoundaryWriter(streams, plan).write();
}

}  // namespace tidepool
