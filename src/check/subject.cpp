#include "check/subject.h"

#include <algorithm>

namespace tidepool::checking {

Subject::Subject(const Program& program_, const Plan& plan_)
    : program(program_), plan(plan_), released_(program_.ops.size()) {}

std::string Subject::tensor_name(TensorId t) const {
  return t == kNone ? "workspace" : fmt::format("tensor '{}'", program.tensors[at(t)].name);
}

std::string Subject::space_name(SpaceId space) const {
  const SpaceKind kind = plan.arenas[at(space)].kind;
  // Where there is one of a kind, its kind is its name.
  const auto alike = std::ranges::count(plan.arenas, kind, &Arena::kind);
  return alike == 1 ? std::string(to_string(kind)) : fmt::format("{} {}", to_string(kind), space);
}

std::string Subject::describe(std::string_view part, const Schedule& schedule,
                              std::size_t i) const {
  const Instruction& x = schedule.instructions[i];
  std::string what;
  switch (x.kind) {
    case InstructionKind::op:
      what = fmt::format("op '{}'", program.ops[at(x.op)].name);
      break;
    case InstructionKind::copy: {
      const Placement& from = plan.placements[at(x.from)];
      const Placement& to = plan.placements[at(x.to)];
      what = fmt::format("copy of {} from {} {} to {} {}", tensor_name(from.tensor),
                         space_name(from.space), from.offset, space_name(to.space), to.offset);
      break;
    }
    case InstructionKind::load:
      what = fmt::format("load of {}", tensor_name(plan.placements[at(x.to)].tensor));
      break;
    case InstructionKind::store:
      what = fmt::format("store of {}", tensor_name(plan.placements[at(x.from)].tensor));
      break;
  }
  return fmt::format("{}[{}] ({}, stream {})", part, i, what, x.stream);
}

Touch Subject::touch(PlacementId id, bool reads, bool writes) const {
  const Placement& p = plan.placements[at(id)];
  return {p.space, p.offset, p.offset + p.bytes, reads, writes, p.tensor};
}

Bytes Subject::block_of(const Instruction& copy) const {
  Bytes block = 1;
  for (const PlacementId id : {copy.from, copy.to}) {
    const Arena& arena = plan.arenas[at(plan.placements[at(id)].space)];
    if (arena.kind == SpaceKind::file) block = std::max(block, arena.alignment);
  }
  return block;
}

Touch Subject::copied(const Instruction& x, PlacementId id, bool writes) const {
  Touch t = touch(id, !writes, writes);
  t.end = t.begin + align_up(t.end - t.begin, block_of(x));
  return t;
}

Touch Subject::workspace(const Instruction& x) const {
  return {program.ops[at(x.op)].device,
          x.workspace_offset,
          x.workspace_offset + x.workspace_bytes,
          false,
          true,
          kNone};
}

std::vector<Touch> Subject::touches(const Instruction& x) const {
  std::vector<Touch> out;
  out.reserve(x.operands.size() + 2);
  if (x.kind == InstructionKind::op) {
    const Op& op = program.ops[at(x.op)];
    for (std::size_t k = 0; k < x.operands.size(); ++k) {
      const AccessMode mode = op.accesses[k].mode;
      out.push_back(touch(x.operands[k], mode != AccessMode::write, mode != AccessMode::read));
    }
    for (const PlacementId id : released_by(x)) out.push_back(touch(id, true, false));
    if (x.workspace_bytes > 0) out.push_back(workspace(x));
  } else if (x.kind == InstructionKind::copy) {
    out.push_back(copied(x, x.from, false));
    out.push_back(copied(x, x.to, true));
  } else {
    if (x.kind != InstructionKind::load) out.push_back(touch(x.from, true, false));
    if (x.kind != InstructionKind::store) out.push_back(touch(x.to, false, true));
  }
  return out;
}

std::span<const PlacementId> Subject::released_by(const Instruction& x) const {
  if (x.op == kNone || first_run_.empty() || first_run_[at(x.op)] != &x) return {};
  return released_[at(x.op)];
}

void Subject::find_released() {
  struct LastAccess {
    OpId op = kNone;
    std::size_t operand = 0;
  };
  std::vector<LastAccess> last(program.tensors.size());
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const auto& accesses = program.ops[i].accesses;
    for (std::size_t k = 0; k < accesses.size(); ++k) {
      last[at(accesses[k].tensor)] = {static_cast<OpId>(i), k};
    }
  }
  first_run_.assign(program.ops.size(), nullptr);
  for (const Instruction& x : plan.steady.instructions) {
    if (x.kind != InstructionKind::op) continue;
    auto& run = first_run_[at(x.op)];
    if (run == nullptr) run = &x;
  }
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    const OpId released_at = program.tensors[t].released_at;
    if (released_at == kNone) continue;
    const Instruction* run = first_run_[at(last[t].op)];
    if (run != nullptr) released_[at(released_at)].push_back(run->operands[last[t].operand]);
  }
}

}  // namespace tidepool::checking
