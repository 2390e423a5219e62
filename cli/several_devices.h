// What to plan for on several devices of a preset.
#pragma once

#include <optional>

#include "job/job_spec.h"
#include "planning/parallel_plan.h"
#include "subject.h"

namespace tidepool::cli {

/// Of `subject`, which is the part of one device on a preset. How long one device would take for
/// the whole batch is known too: with the fastest algorithms where a planner chooses them
/// (`choosing`), else with those of the policy.
Result<void> several_on_preset(const JobSpec& job, bool choosing, Subject& subject);

/// Of one device and of all; nothing where there is one. `subject` must outlive it.
std::optional<ParallelProgram> parallel_program(const JobSpec& job, const Subject& subject);

/// The plan of all devices from `plan` of one, whose `part` may be in rounds that were chosen: then
/// so is `subject`, and what `parallel_program` gave earlier is gone.
Result<ParallelPlan> plan_of_devices(const JobSpec& job, Subject& subject, const Program& part,
                                     const Plan& plan, const Budget& budget,
                                     std::int32_t host_cores);

}  // namespace tidepool::cli
