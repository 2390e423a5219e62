#include "schedule/releases.h"

#include "base/at.h"

namespace tidepool {

std::vector<Release> releases(const Program& program, const Plan& plan) {
  std::vector<OpId> last(program.tensors.size(), kNone);
  for (OpId op = 0; op < std::ssize(program.ops); ++op) {
    for (const Access& access : program.ops[at(op)].accesses) last[at(access.tensor)] = op;
  }
  std::vector<std::int32_t> first_run(program.ops.size(), kNone);
  std::vector<PlacementId> place(program.tensors.size(), kNone);
  const auto& steady = plan.steady.instructions;
  for (std::int32_t i = 0; i < std::ssize(steady); ++i) {
    const Instruction& x = steady[at(i)];
    if (x.kind != InstructionKind::op || first_run[at(x.op)] != kNone) continue;
    first_run[at(x.op)] = i;
    for (std::size_t k = 0; k < x.operands.size(); ++k) {
      const TensorId tensor = program.ops[at(x.op)].accesses[k].tensor;
      if (last[at(tensor)] == x.op) place[at(tensor)] = x.operands[k];
    }
  }
  std::vector<Release> found;
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    const OpId release = program.tensors[t].released_at;
    if (release == kNone || place[t] == kNone || first_run[at(release)] == kNone) continue;
    found.push_back({place[t], first_run[at(release)]});
  }
  return found;
}

}  // namespace tidepool
