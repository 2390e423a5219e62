#include "runtime/profiler.h"

#include <algorithm>

namespace tidepool {

void apply_timings(const Plan& plan, const std::vector<std::vector<OpTiming>>& timings,
                   Program& program) {
  if (timings.empty()) return;
  const auto& list = plan.steady.instructions;
  std::vector<Nanos> samples;
  std::size_t previous = list.size();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Instruction& x = list[i];
    if (x.kind != InstructionKind::op ||
        plan.streams[static_cast<std::size_t>(x.stream)].kind != StreamKind::compute) {
      continue;
    }
    samples.clear();
    for (const auto& iteration : timings) {
      const Nanos begin = previous < list.size() ? iteration[previous].end : iteration[i].start;
      samples.push_back(iteration[i].end - begin);
    }
    std::nth_element(samples.begin(),
                     samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2),
                     samples.end());
    Op& op = program.ops[static_cast<std::size_t>(x.op)];
    op.algorithms[static_cast<std::size_t>(x.algorithm)].time = samples[samples.size() / 2];
    previous = i;
  }
}

}  // namespace tidepool
