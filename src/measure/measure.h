// Measures the ops of a job inside a budget: with everything kept where that fits, else with
// tensors that come and go on demand.
#pragma once

#include <optional>
#include <vector>

#include "job/job.h"
#include "measure/profiling_task.h"
#include "planning/algorithm_choice.h"
#include "planning/measurement.h"

namespace tidepool {

/// Which algorithms of each op to run, one list after the other, to measure all of them or only
/// those of the policy.
std::vector<AlgorithmChoice> variants_to_measure(const Program& program, AlgorithmPolicy policy,
                                                 bool all);

/// A plan that keeps everything inside the budget; nothing when that does not fit. Works before any
/// op has a time.
std::optional<Lowered> kept_plan(const Program& program, const Machine& machine,
                                 AlgorithmChoice algorithms, const Budget& budget);

/// How `measure` would go about it.
Measurement planned_measurement(const Job& job, const Machine& machine, const ProfilingTask& task);

/// Puts op times into the job's program without using more than the task's budget, which must be
/// feasible, in the way of `how` (of planned_measurement). Returns what was done.
Result<Measurement> measure(Job& job, const Machine& machine, const ProfilingTask& task,
                            const Measurement& how, Observer& observer);

}  // namespace tidepool
