// The subject of a model on a preset: nothing is measured.
#pragma once

#include "job/job_spec.h"
#include "planning/subject.h"

namespace tidepool {

/// Layouts without padding, the algorithms of a GPU's library, times from the compute model of
/// `machine`, a preset's name. Of several devices it is the part of one; how long one would take
/// for the whole batch is known too, with the fastest algorithms where a planner chooses them
/// (`choosing`), else with those of the policy.
Result<Subject> subject_on_preset(const JobSpec& job, const std::string& machine, bool choosing);

}  // namespace tidepool
