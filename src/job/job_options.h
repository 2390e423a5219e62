// The options of a JobSpec as records, each with the field that it sets. `model` and `seed` are not
// among them: the one is what a command is about, the other a number beyond those of records.
#pragma once

#include <span>

#include "base/option.h"
#include "job/job_spec.h"
#include "planning/planning_options.h"

namespace tidepool {

using JobOption = OptionOf<JobSpec>;

/// In the order in which help has them.
std::span<const JobOption> job_options();
/// Those of several devices, for what runs or plans on more than one.
std::span<const JobOption> parallel_options();

}  // namespace tidepool
