#include "runtime/profiler.h"

#include <algorithm>

namespace tidepool {

void apply_timings(const Plan& plan, const std::vector<std::vector<OpTiming>>& timings,
                   Program& program) {
  if (timings.empty()) return;
  const auto& list = plan.steady.instructions;
  const auto ran = [](const OpTiming& t) { return t.end > Nanos{0}; };
  std::vector<Nanos> samples;
  std::vector<std::size_t> before;  // device ops so far
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Instruction& x = list[i];
    if (x.kind != InstructionKind::op ||
        plan.streams[static_cast<std::size_t>(x.stream)].kind != StreamKind::compute) {
      continue;
    }
    samples.clear();
    for (const auto& iteration : timings) {
      if (!ran(iteration[i])) continue;
      const auto previous = std::find_if(before.rbegin(), before.rend(),
                                         [&](std::size_t p) { return ran(iteration[p]); });
      const Nanos begin = previous != before.rend() ? iteration[*previous].end : iteration[i].start;
      samples.push_back(iteration[i].end - begin);
    }
    before.push_back(i);
    if (samples.empty()) continue;
    std::nth_element(samples.begin(),
                     samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2),
                     samples.end());
    Op& op = program.ops[static_cast<std::size_t>(x.op)];
    op.algorithms[static_cast<std::size_t>(x.algorithm)].time = samples[samples.size() / 2];
  }
}

}  // namespace tidepool
