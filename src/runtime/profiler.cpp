#include "runtime/profiler.h"

#include <algorithm>

#include "base/median.h"

namespace tidepool {
namespace {

/// A guard may have skipped the op.
bool ran(const OpTiming& t) { return t.end > Nanos{0}; }

}  // namespace

void apply_timings(const Plan& plan, const std::vector<std::vector<OpTiming>>& timings,
                   Program& program) {
  if (timings.empty()) return;
  const auto& list = plan.steady.instructions;
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
    Op& op = program.ops[static_cast<std::size_t>(x.op)];
    op.algorithms[static_cast<std::size_t>(x.algorithm)].time = median(samples);
  }
}

void apply_op_timings(std::span<const std::int32_t> algorithms,
                      const std::vector<std::vector<OpTiming>>& timings, Program& program) {
  if (timings.empty()) return;
  std::vector<Nanos> samples;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    Op& op = program.ops[i];
    if (op.place != OpPlace::device) continue;
    samples.clear();
    for (const auto& iteration : timings) {
      if (ran(iteration[i])) samples.push_back(iteration[i].end - iteration[i].start);
    }
    if (samples.empty()) continue;
    op.algorithms[static_cast<std::size_t>(algorithms[i])].time = median(samples);
  }
}

}  // namespace tidepool
