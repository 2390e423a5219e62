#include "planners/toolkit/candidate_gaps.h"

#include "base/at.h"
#include "ir/load_profile.h"
#include "planners/toolkit/unstalled_starts.h"

namespace tidepool {

std::vector<GapId> candidate_gaps(const Program& program, const AccessIndex& index,
                                  Bytes smallest) {
  std::vector<GapId> result;
  for (GapId g = 0; g < static_cast<GapId>(index.gaps().size()); ++g) {
    const Gap& gap = index.gaps()[at(g)];
    if (gap.kind != GapKind::device) continue;
    if (program.tensors[at(gap.tensor)].bytes >= smallest) result.push_back(g);
  }
  return result;
}

Bytes smallest_worth_moving(const Program& program, const AccessIndex& index,
                            const Machine& machine, std::span<const std::int32_t> algorithms) {
  constexpr Bytes kParts = 1 << 16;
  return load_profile(program, index, machine.alignment(), algorithms).peak / kParts;
}

bool long_enough(const Gap& gap, const Program& program, const Machine& machine,
                 std::span<const Nanos> starts) {
  const Bytes bytes = program.tensors[at(gap.tensor)].bytes;
  return 2 * idle_time(gap, starts) >=
         machine.to_away().time(bytes) + machine.from_away().time(bytes);
}

}  // namespace tidepool
