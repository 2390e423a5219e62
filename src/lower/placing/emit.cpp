#include "lower/placing/emit.h"

#include "base/at.h"
#include "lower/placing/boundary_schedules.h"

namespace tidepool {
namespace {

Placement placement_of(const Instance& instance, Bytes offset) {
  return {instance.tensor, instance.space, offset, instance.bytes};
}

class Emitter {
 public:
  explicit Emitter(const EmitInput& input) : in_(input) {}

  Plan build() {
    plan_.arenas = in_.arenas;
    plan_.streams = in_.streams.streams;
    add_placements();
    for (const Step& step : in_.steps) plan_.steady.instructions.push_back(instruction(step));
    add_boundary_schedules({in_.streams.in, in_.streams.out, in_.streams.host}, plan_);
    return std::move(plan_);
  }

 private:
  void add_placements() {
    const auto& all = in_.instances.all;
    placement_.assign(all.size(), kNone);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].tensor == kNone) continue;  // workspaces have no placement of their own
      placement_[i] = static_cast<PlacementId>(plan_.placements.size());
      plan_.placements.push_back(placement_of(all[i], in_.offsets[i]));
    }
    for (const LifeId id : in_.expansion.boundary) {
      if (id != kNone) plan_.boundary.push_back(placement_[at(id)]);
    }
  }

  Instruction instruction(const Step& step) {
    Instruction out;
    out.stream = step.stream;
    for (StreamId s = 0; s < kMaxStreams; ++s) {
      const StepWait& wait = step.waits[at(s)];
      if (wait.index != kNone) out.waits.push_back({s, wait.index, wait.iteration});
    }
    if (step.kind != StepKind::op) {
      const Move& move = in_.expansion.moves[at(step.id)];
      const PlacementId device = placement_[at(move.device)];
      const PlacementId host = placement_[at(move.host)];
      return move.out ? copy(std::move(out), device, host) : copy(std::move(out), host, device);
    }
    const Call& call = in_.expansion.calls[at(step.id)];
    const Op& op = in_.program.ops[at(call.op)];
    out.kind = InstructionKind::op;
    out.op = call.op;
    out.algorithm = in_.strategy.algorithms[at(call.op)];
    out.guard = op.guard;
    for (std::size_t k = 0; k < op.accesses.size(); ++k) {
      out.operands.push_back(placement_[at(in_.expansion.operands[at(call.first_operand) + k])]);
    }
    if (const InstanceId workspace = in_.instances.workspace[at(step.id)]; workspace != kNone) {
      out.workspace_offset = in_.offsets[at(workspace)];
      out.workspace_bytes = in_.instances.all[at(workspace)].bytes;
    }
    return out;
  }

  Instruction copy(Instruction out, PlacementId from, PlacementId to) const {
    out.kind = InstructionKind::copy;
    out.from = from;
    out.to = to;
    out.bytes = plan_.placements[at(from)].bytes;
    return out;
  }

  const EmitInput& in_;
  Plan plan_;
  std::vector<PlacementId> placement_;
};

}  // namespace

Plan emit_plan(const EmitInput& input) { return Emitter(input).build(); }

}  // namespace tidepool
