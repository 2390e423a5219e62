#include "runtime/profiler.h"

#include <algorithm>

namespace tidepool {
namespace {

Nanos median(std::vector<Nanos>& samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

}  // namespace

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
    Op& op = program.ops[static_cast<std::size_t>(x.op)];
    op.algorithms[static_cast<std::size_t>(x.algorithm)].time = median(samples);
    previous = i;
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
      samples.push_back(iteration[i].end - iteration[i].start);
    }
    op.algorithms[static_cast<std::size_t>(algorithms[i])].time = median(samples);
  }
}

}  // namespace tidepool
