// time_plan: a plan's steady state as steps with times.
#pragma once

#include <span>
#include <vector>

#include "cost/machine.h"
#include "lower/step.h"
#include "schedule/lateness.h"
#include "schedule/schedule.h"

namespace tidepool {

/// The steady state of a plan for the streams of `StreamTable::of(machine)`, and perhaps more
/// behind them (ScheduledStep::kStreams in all), as steps with the times of their long run, and the
/// time of an iteration: what `simulate` says. Ids are ops, and numbers of copies in the list.
/// Steps have no waits for the streams behind. `durations`: of each instruction; where there are
/// none, by the program's times and the machine's links. `late`: by stream; of others 0.
struct TimedPlan {
  std::vector<Step> steps;
  Nanos iteration_time{};
};
TimedPlan time_plan(const Program& program, const Plan& plan, const Machine& machine,
                    std::span<const Nanos> durations = {}, std::span<const Lateness> late = {});

}  // namespace tidepool
