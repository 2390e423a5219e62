#include "lower/time_plan.h"

#include "base/at.h"
#include "base/invariant.h"
#include "lower/timing/replay.h"

namespace tidepool {

TimedPlan time_plan(const Program& program, const Plan& plan, const Machine& machine,
                    std::span<const Nanos> durations, std::span<const Lateness> late) {
  TimedPlan timed;
  std::int32_t copies = 0;
  timed.steps.reserve(plan.steady.instructions.size());
  std::vector<ScheduledStep> scheduled;
  scheduled.reserve(plan.steady.instructions.size());
  invariant(std::ssize(plan.streams) <= ScheduledStep::kStreams, "a plan has few streams");
  for (const Instruction& x : plan.steady.instructions) {
    Step step;
    step.stream = x.stream;
    if (x.kind == InstructionKind::op) {
      step.id = x.op.value();
      step.duration = program.ops[at(x.op)].algorithms[at(x.algorithm)].time;
    } else {
      const Placement& from = plan.placements[at(x.from)];
      const Placement& to = plan.placements[at(x.to)];
      step.kind = to.space > from.space ? StepKind::copy_out : StepKind::copy_in;
      step.id = copies++;
      step.duration = machine.find_link(from.space, to.space)->speed.time(x.bytes);
    }
    if (!durations.empty()) step.duration = durations[timed.steps.size()];
    ScheduledStep& same = scheduled.emplace_back();
    same.stream = step.stream;
    same.duration = step.duration;
    if (at(step.stream) < late.size()) same.late = late[at(step.stream)];
    for (const Wait& wait : x.waits) {
      same.waits.push_back({wait.index, wait.iteration});
      if (wait.stream < kMaxStreams) step.waits[at(wait.stream)] = same.waits.back();
    }
    timed.steps.push_back(step);
  }
  ReplayScratch scratch;
  timed.iteration_time = replay(std::span(scheduled), StreamTable::of(machine).compute, scratch);
  for (std::size_t i = 0; i < scheduled.size(); ++i) {
    timed.steps[i].start = scheduled[i].start;
    timed.steps[i].end = scheduled[i].end;
  }
  return timed;
}

}  // namespace tidepool
