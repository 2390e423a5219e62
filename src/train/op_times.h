// What ops take on the device while a plan runs, beside what their profile says: a profile that was
// measured on a busy machine, or is of another state of it, makes plans for a machine that is not
// there.
#pragma once

#include "ir/program.h"
#include "schedule/observation.h"
#include "schedule/schedule.h"

namespace tidepool {

/// All device ops of the plan that were measured, over what the program says of them; 1 where none
/// was, or the program says nothing.
double measured_factor(const Program& program, const Plan& plan, const Observation& observation);

/// Up to here in either direction a profile counts as right: plans are seldom others for less, and
/// a machine that others use as well is slower for a while.
inline constexpr double kUsualFactor = 1.5;

/// Ops take what was measured of the algorithm that ran. Others of the op change in the same
/// proportion, and ops that were not measured by `measured_factor`.
void take_measured_times(const Plan& plan, const Observation& observation, Program& program);

}  // namespace tidepool
