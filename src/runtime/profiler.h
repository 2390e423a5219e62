// Profiling: op times measured on a device become the times of a program's algorithms.
#pragma once

#include <span>

#include "runtime/executor.h"
#include "schedule/strategy.h"

namespace tidepool {

/// Medians over recorded iterations, but no more than a tenth above the least: on a busy machine
/// ops are interrupted. An op takes from the end of the op before it to its own end, so that what
/// the device needs between two ops is counted; the first op counts from its start. Iterations that
/// skipped an op by its guard do not count for it. `timings` are an executor's, of a plan whose ops
/// never stall (everything kept). Returns by which part all medians are above all least times.
double apply_timings(const Plan& plan, const std::vector<std::vector<OpTiming>>& timings,
                     Program& program);

/// The same over iterations that stall between ops (Reactive's): a device op takes from its own
/// start to its own end. `timings` is [iteration][op], `algorithms` what each op ran.
void apply_op_timings(std::span<const std::int32_t> algorithms,
                      const std::vector<std::vector<OpTiming>>& timings, Program& program);

}  // namespace tidepool
