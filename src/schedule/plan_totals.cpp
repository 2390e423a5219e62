#include "schedule/plan_totals.h"

namespace tidepool {

PlanTotals totals_of(const Program& program, const Plan& plan) {
  const auto at = [](std::int32_t index) { return static_cast<std::size_t>(index); };
  PlanTotals totals;
  std::vector<Bytes> out(program.tensors.size(), 0);
  std::vector<char> comes_in(program.tensors.size(), 0);
  std::int64_t runs = 0;
  for (const Instruction& x : plan.steady.instructions) {
    if (x.kind == InstructionKind::op) ++runs;
    if (x.kind != InstructionKind::copy) continue;
    const Placement& to = plan.placements[at(x.to)];
    const bool from_device = plan.kind_of(x.from) == SpaceKind::device;
    const bool to_device = plan.kind_of(x.to) == SpaceKind::device;
    if (from_device && !to_device) {
      totals.copied_out += x.bytes;
      out[at(to.tensor)] += x.bytes;
    } else if (to_device && !from_device) {
      totals.copied_in += x.bytes;
      comes_in[at(to.tensor)] = 1;
    }
  }
  for (std::size_t t = 0; t < out.size(); ++t) {
    if (out[t] == 0 || !comes_in[t]) continue;
    ++totals.swapped_tensors;
    totals.swapped_out += out[t];
  }
  totals.recomputed_ops = runs - static_cast<std::int64_t>(program.ops.size());
  return totals;
}

}  // namespace tidepool
