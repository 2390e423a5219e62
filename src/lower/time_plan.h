// time_plan: a plan's steady state as steps with times.
#pragma once

#include <vector>

#include "cost/machine.h"
#include "lower/step.h"
#include "schedule/schedule.h"

namespace tidepool {

/// The steady state of a plan for the streams of `StreamTable::of(machine)`, and perhaps more
/// behind them (ScheduledStep::kStreams in all), as steps with the times of their long run, and the
/// time of an iteration: what `simulate` says. Ids are ops, and numbers of copies in the list.
/// Steps have no waits for the streams behind.
struct TimedPlan {
  std::vector<Step> steps;
  Nanos iteration_time{};
};
TimedPlan time_plan(const Program& program, const Plan& plan, const Machine& machine);

}  // namespace tidepool
