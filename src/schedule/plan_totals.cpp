#include "schedule/plan_totals.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/at.h"

namespace tidepool {
namespace {

/// What is copied of a tensor off one device and onto it.
struct Traffic {
  Bytes out = 0;
  Bytes in = 0;
};

}  // namespace

PlanTotals totals_of(const Program& program, const Plan& plan) {
  PlanTotals totals;
  std::map<std::pair<TensorId, SpaceId>, Traffic> traffic;
  std::map<std::pair<SpaceId, SpaceId>, Bytes> copied;
  std::int64_t runs = 0;
  for (const Instruction& x : plan.steady.instructions) {
    if (x.kind == InstructionKind::op) {
      const Op& op = program.ops[at(x.op)];
      ++runs;
      if (op.place == OpPlace::device) totals.compute_time += op.algorithms[at(x.algorithm)].time;
    }
    if (x.kind != InstructionKind::copy) continue;
    const Placement& from = plan.placements[at(x.from)];
    const Placement& to = plan.placements[at(x.to)];
    copied[{from.space, to.space}] += x.bytes;
    if (plan.kind_of(x.from) == SpaceKind::device) {
      totals.copied_out += x.bytes;
      traffic[{from.tensor, from.space}].out += x.bytes;
    }
    if (plan.kind_of(x.to) == SpaceKind::device) {
      totals.copied_in += x.bytes;
      traffic[{to.tensor, to.space}].in += x.bytes;
    }
  }
  for (const auto& [spaces, bytes] : copied) {
    totals.copied.push_back({spaces.first, spaces.second, bytes});
  }
  TensorId counted = kNone;  // the map has a tensor's devices one after the other
  for (const auto& [where, moved] : traffic) {
    if (moved.out == 0 || moved.in == 0) continue;
    if (where.first != counted) ++totals.swapped_tensors;
    counted = where.first;
    totals.swapped_out += moved.out;
  }
  totals.written = written_to_files(plan);
  totals.recomputed_ops = runs - static_cast<std::int64_t>(program.ops.size());
  return totals;
}

Bytes written_to_files(const Plan& plan) {
  Bytes written = 0;
  for (const Instruction& x : plan.steady.instructions) {
    if (x.kind != InstructionKind::copy || plan.kind_of(x.to) != SpaceKind::file) continue;
    const Placement& to = plan.placements[at(x.to)];
    written += align_up(x.bytes, std::max<Bytes>(plan.arenas[at(to.space)].alignment, 1));
  }
  return written;
}

std::vector<std::int32_t> chosen_algorithms(const Program& program, const Plan& plan) {
  std::vector<std::int32_t> chosen(program.ops.size(), 0);
  for (const Instruction& x : plan.steady.instructions) {
    if (x.kind == InstructionKind::op) chosen[at(x.op)] = x.algorithm;
  }
  return chosen;
}

}  // namespace tidepool
