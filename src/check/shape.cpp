#include "check/shape.h"

#include <algorithm>
#include <map>

namespace tidepool::checking {
namespace {

class Shape {
 public:
  Shape(const Subject& subject, const CheckLimits& limits)
      : subject_(subject), program_(subject.program), plan_(subject.plan), limits_(limits) {}

  void check() const {
    check_arenas();
    check_part("entry", plan_.entry, false);
    check_part("steady", plan_.steady, true);
    check_part("exit", plan_.exit, false);
  }

 private:
  void check_arenas() const {
    if (plan_.arenas.size() != limits_.spaces.size()) {
      refute(1, "the plan has {} arenas, the machine {} spaces", plan_.arenas.size(),
             limits_.spaces.size());
    }
    for (SpaceId s = 0; s < std::ssize(plan_.arenas); ++s) check_arena(s);
    for (std::size_t s = 0; s < plan_.streams.size(); ++s) {
      const std::int32_t device = plan_.streams[s].device;
      if (!valid_index(device, plan_.arenas) ||
          plan_.arenas[at(device)].kind != SpaceKind::device) {
        refute(1, "stream {} is of device {}, which does not exist", s, device);
      }
    }
    for (std::size_t i = 0; i < plan_.placements.size(); ++i) {
      const Placement& p = plan_.placements[i];
      if (!valid_index(p.tensor, program_.tensors)) {
        refute(1, "placement {} names tensor {} of {}", i, p.tensor, program_.tensors.size());
      }
      if (!valid_index(p.space, plan_.arenas)) {
        refute(1, "placement {} is in space {} of {}", i, p.space, plan_.arenas.size());
      }
      if (p.bytes != program_.tensors[at(p.tensor)].bytes) {
        refute(1, "placement {} of {} has {} B, the tensor {} B", i, subject_.tensor_name(p.tensor),
               p.bytes, program_.tensors[at(p.tensor)].bytes);
      }
      check_range(p.space, p.offset, p.bytes, subject_.tensor_name(p.tensor));
    }
  }

  void check_arena(SpaceId id) const {
    const Arena& arena = plan_.arenas[at(id)];
    const CheckLimits::Space& limit = limits_.spaces[at(id)];
    const std::string name = subject_.space_name(id);
    if (arena.kind != limit.kind) {
      refute(1, "space {} is a {} in the plan, and a {} of the machine", id, to_string(arena.kind),
             to_string(limit.kind));
    }
    if (arena.bytes > limit.bytes) {
      refute(1, "the plan's {} arena of {} B exceeds the {} budget of {} B", name, arena.bytes,
             name, limit.bytes);
    }
    if (arena.alignment <= 0 || (arena.alignment & (arena.alignment - 1)) != 0) {
      refute(1, "alignment {} is not a power of two", arena.alignment);
    }
    if (arena.alignment % limit.alignment != 0) {
      refute(1, "the plan's {} addresses are aligned to {} B, the machine asks for {} B", name,
             arena.alignment, limit.alignment);
    }
  }

  void check_range(SpaceId space, Bytes offset, Bytes bytes, const std::string& what) const {
    const Arena& arena = plan_.arenas[at(space)];
    if (offset < 0 || bytes < 0 || offset > arena.bytes - bytes) {
      refute(1, "{} at [{}, {} + {}) is outside the {} arena of {} B", what, offset, offset, bytes,
             subject_.space_name(space), arena.bytes);
    }
    if (offset % arena.alignment != 0) {
      refute(1, "{} at {} is not aligned to {} B", what, offset, arena.alignment);
    }
  }

  void check_part(std::string_view part, const Schedule& schedule, bool cyclic) const {
    for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
      const Instruction& x = schedule.instructions[i];
      check_fields(part, i, x);
      check_waits(part, schedule, i, cyclic);
    }
    check_resources(part, schedule);
  }

  /// A device runs one op at a time and a channel carries one copy at a time: whoever walks the
  /// plan takes two streams for two of them.
  void check_resources(std::string_view part, const Schedule& schedule) const {
    std::map<std::int32_t, StreamId> stream_of_channel;
    std::map<std::int32_t, StreamId> stream_of_device;
    for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
      const Instruction& x = schedule.instructions[i];
      const auto take = [&](std::map<std::int32_t, StreamId>& streams, std::int32_t resource,
                            const std::string& what) {
        const StreamId used = streams.emplace(resource, x.stream).first->second;
        if (used == x.stream) return;
        refute(0, "{}[{}] is on stream {}, and earlier {} on stream {}", part, i, x.stream, what,
               used);
      };
      if (x.kind == InstructionKind::op && program_.ops[at(x.op)].place == OpPlace::device) {
        const SpaceId device = program_.ops[at(x.op)].device;
        take(stream_of_device, device, fmt::format("ops of device {}", device));
      } else if (x.kind == InstructionKind::copy) {
        const SpaceId from = plan_.placements[at(x.from)].space;
        const SpaceId to = plan_.placements[at(x.to)].space;
        if (from == to) {
          refute(0, "{}[{}] copies inside space {}, where no link leads", part, i,
                 subject_.space_name(from));
        }
        const auto link = std::ranges::find_if(limits_.links, [&](const CheckLimits::Link& l) {
          return l.from == from && l.to == to;
        });
        if (link == limits_.links.end()) {
          refute(0, "{}[{}] copies from {} to {}, between which there is no link", part, i,
                 subject_.space_name(from), subject_.space_name(to));
        }
        take(stream_of_channel, link->channel, "copies it has to take turns with");
      }
    }
  }

  void check_stream(std::string_view part, std::size_t i, const Instruction& x,
                    StreamKind kind) const {
    if (plan_.streams[at(x.stream)].kind != kind) {
      refute(0, "{}[{}] is on stream {}, which is of another kind", part, i, x.stream);
    }
  }

  void check_fields(std::string_view part, std::size_t i, const Instruction& x) const {
    if (!valid_index(x.stream, plan_.streams))
      refute(0, "{}[{}] names stream {}", part, i, x.stream);
    if (x.kind == InstructionKind::op) {
      check_op(part, i, x);
      return;
    }
    if (x.guard != kNone) refute(0, "{}[{}] has a guard; only ops may be skipped", part, i);
    const bool has_from = x.kind != InstructionKind::load;
    const bool has_to = x.kind != InstructionKind::store;
    if ((has_from && !valid_index(x.from, plan_.placements)) ||
        (has_to && !valid_index(x.to, plan_.placements))) {
      refute(1, "{}[{}] names a placement that does not exist", part, i);
    }
    const Placement& p = plan_.placements[at(has_from ? x.from : x.to)];
    if (x.bytes != p.bytes) {
      refute(3, "{}[{}] moves {} of the {} B of {}", part, i, x.bytes, p.bytes,
             subject_.tensor_name(p.tensor));
    }
    if (x.kind == InstructionKind::copy) {
      check_stream(part, i, x, StreamKind::copy);
      if (plan_.placements[at(x.from)].tensor != plan_.placements[at(x.to)].tensor) {
        refute(3, "{}[{}] copies {} over {}", part, i, subject_.tensor_name(p.tensor),
               subject_.tensor_name(plan_.placements[at(x.to)].tensor));
      }
      check_blocks(part, i, x);
    } else {
      check_stream(part, i, x, StreamKind::host);
      if (plan_.arenas[at(p.space)].kind != SpaceKind::host) {
        refute(1, "{}[{}] loads or stores {} bytes", part, i, subject_.space_name(p.space));
      }
    }
  }

  /// With a file at one end both ends are whole blocks.
  void check_blocks(std::string_view part, std::size_t i, const Instruction& x) const {
    const Bytes block = subject_.block_of(x);
    if (block == 1) return;
    for (const PlacementId id : {x.from, x.to}) {
      const Touch t = subject_.copied(x, id, false);
      const Bytes end = plan_.arenas[at(t.space)].bytes;
      if (t.begin % block == 0 && t.end <= end) continue;
      refute(1, "{}[{}] copies blocks of {} B, and {} is at {} of the {} arena of {} B", part, i,
             block, subject_.tensor_name(t.tensor), t.begin, subject_.space_name(t.space), end);
    }
  }

  void check_op(std::string_view part, std::size_t i, const Instruction& x) const {
    if (!valid_index(x.op, program_.ops)) refute(1, "{}[{}] names op {}", part, i, x.op);
    const Op& op = program_.ops[at(x.op)];
    if (x.guard != op.guard) {
      refute(5, "{}[{}] is skipped by guard {}, op '{}' by guard {}", part, i, x.guard, op.name,
             op.guard);
    }
    if (!valid_index(x.algorithm, op.algorithms)) {
      refute(1, "{}[{}]: op '{}' has no algorithm {}", part, i, op.name, x.algorithm);
    }
    const bool device = op.place == OpPlace::device;
    check_stream(part, i, x, device ? StreamKind::compute : StreamKind::host);
    const SpaceId space = device ? SpaceId{op.device} : plan_.host();
    if (device && plan_.streams[at(x.stream)].device != op.device) {
      refute(0, "{}[{}]: op '{}' of device {} is on a stream of device {}", part, i, op.name,
             op.device, plan_.streams[at(x.stream)].device);
    }
    if (x.operands.size() != op.accesses.size()) {
      refute(3, "{}[{}]: op '{}' has {} accesses, the instruction {} operands", part, i, op.name,
             op.accesses.size(), x.operands.size());
    }
    for (std::size_t k = 0; k < x.operands.size(); ++k) {
      if (!valid_index(x.operands[k], plan_.placements)) {
        refute(1, "{}[{}] names placement {}", part, i, x.operands[k]);
      }
      const Placement& p = plan_.placements[at(x.operands[k])];
      if (p.tensor != op.accesses[k].tensor) {
        refute(3, "{}[{}]: op '{}' is given {} in place of {}", part, i, op.name,
               subject_.tensor_name(p.tensor), subject_.tensor_name(op.accesses[k].tensor));
      }
      if (p.space != space) {
        refute(3, "{}[{}]: op '{}' is given {} in the wrong memory", part, i, op.name,
               subject_.tensor_name(p.tensor));
      }
    }
    const Bytes needed = op.algorithms[at(x.algorithm)].workspace;
    if (x.workspace_bytes < needed) {
      refute(1, "{}[{}]: op '{}' has {} B of workspace and needs {} B", part, i, op.name,
             x.workspace_bytes, needed);
    }
    if (x.workspace_bytes > 0) {
      check_range(space, x.workspace_offset, x.workspace_bytes,
                  fmt::format("workspace of op '{}'", op.name));
    }
  }

  void check_waits(std::string_view part, const Schedule& schedule, std::size_t i,
                   bool cyclic) const {
    const Instruction& x = schedule.instructions[i];
    std::vector<char> seen(plan_.streams.size(), 0);
    for (const Wait& w : x.waits) {
      if (!valid_index(w.stream, plan_.streams) || !valid_index(w.index, schedule.instructions)) {
        refute(0, "{}[{}] waits for instruction {} of stream {}", part, i, w.index, w.stream);
      }
      if (w.stream == x.stream || seen[at(w.stream)]) {
        refute(0, "{}[{}] waits twice for stream {}, or for its own", part, i, w.stream);
      }
      seen[at(w.stream)] = 1;
      if (schedule.instructions[at(w.index)].stream != w.stream) {
        refute(0, "{}[{}] waits for instruction {}, which is not on stream {}", part, i, w.index,
               w.stream);
      }
      const bool backwards = w.iteration == 0 ? at(w.index) < i : (w.iteration == -1 && cyclic);
      if (!backwards) {
        refute(0, "{}[{}] waits for instruction {} of iteration {}, which is not issued before it",
               part, i, w.index, w.iteration);
      }
    }
  }

  const Subject& subject_;
  const Program& program_;
  const Plan& plan_;
  const CheckLimits& limits_;
};

}  // namespace

void check_shape(const Subject& subject, const CheckLimits& limits) {
  Shape(subject, limits).check();
}

std::vector<std::int32_t> check_counts(const Subject& subject) {
  const Program& program = subject.program;
  const Plan& plan = subject.plan;
  std::vector<int> runs(program.ops.size(), 0);
  std::vector<std::int32_t> algorithms(program.ops.size(), kNone);
  for (const Instruction& x : plan.steady.instructions) {
    if (x.kind == InstructionKind::load || x.kind == InstructionKind::store) {
      refute(5, "the steady state loads or stores a persistent tensor");
    }
    if (x.kind != InstructionKind::op) continue;
    ++runs[at(x.op)];
    if (algorithms[at(x.op)] != kNone && algorithms[at(x.op)] != x.algorithm) {
      refute(3, "op '{}' runs with two algorithms", program.ops[at(x.op)].name);
    }
    algorithms[at(x.op)] = x.algorithm;
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Op& op = program.ops[i];
    if (runs[i] == 0) refute(5, "op '{}' never runs", op.name);
    const bool repeats = runs[i] == 0 || op.algorithms[at(algorithms[i])].deterministic;
    if (runs[i] > 1 && (!op.recomputable || !repeats || op.place == OpPlace::host)) {
      refute(5, "op '{}' runs {} times an iteration and must run once", op.name, runs[i]);
    }
  }
  for (const Schedule* s : {&plan.entry, &plan.exit}) {
    for (const Instruction& x : s->instructions) {
      if (x.kind == InstructionKind::op)
        refute(5, "entry or exit runs op '{}'", program.ops[at(x.op)].name);
    }
  }
  return algorithms;
}

}  // namespace tidepool::checking
