#include "sim/simulate.h"

#include <algorithm>

namespace tidepool {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

}  // namespace

Nanos duration_of(const Instruction& x, const Plan& plan, const Program& program,
                  const Machine& machine) {
  if (x.kind == InstructionKind::op) return program.ops[at(x.op)].algorithms[at(x.algorithm)].time;
  if (x.kind != InstructionKind::copy) return Nanos{0};
  const bool to_host = plan.placements[at(x.to)].space == kHostSpace;
  return (to_host ? machine.to_host : machine.to_device).time(x.bytes);
}

Simulation simulate(const Program& program, const Plan& plan, const Machine& machine,
                    int iterations, const Guards& guards) {
  const auto& list = plan.steady.instructions;
  Simulation result;
  std::vector<Nanos> durations;
  for (const Instruction& x : list) {
    durations.push_back(duration_of(x, plan, program, machine));
    if (x.kind != InstructionKind::copy) continue;
    const bool to_host = plan.placements[at(x.to)].space == kHostSpace;
    (to_host ? result.copied_out : result.copied_in) += x.bytes;
  }
  std::vector<Nanos> free_at(plan.streams.size());
  for (int iteration = 0; iteration < iterations; ++iteration) {
    std::vector<Span> spans(list.size());
    Nanos compute_end{0};
    const std::uint32_t on = guards ? guards(iteration) : ~0U;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Instruction& x = list[i];
      Nanos start = free_at[at(x.stream)];
      for (const Wait& wait : x.waits) {
        if (wait.iteration == 0) {
          start = std::max(start, spans[at(wait.index)].end);
        } else if (iteration > 0) {
          start = std::max(start, result.iterations.back()[at(wait.index)].end);
        }
      }
      const bool skipped = x.guard != kNone && (on >> x.guard & 1U) == 0;
      spans[i] = {start, skipped ? start : start + durations[i]};
      free_at[at(x.stream)] = spans[i].end;
      if (plan.streams[at(x.stream)].kind == StreamKind::compute) {
        compute_end = std::max(compute_end, spans[i].end);
      }
    }
    result.iterations.push_back(std::move(spans));
    result.iteration_end.push_back(compute_end);
  }
  const std::size_t n = result.iteration_end.size();
  if (n >= 2) {
    result.iteration_time = result.iteration_end[n - 1] - result.iteration_end[n - 2];
  } else if (n == 1) {
    result.iteration_time = result.iteration_end[0];
  }
  return result;
}

}  // namespace tidepool
