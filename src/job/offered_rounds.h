// Rounds of a job: what there is to choose from, and its program in each.
#pragma once

#include <cstdint>
#include <vector>

#include "job/job.h"
#include "job/job_spec.h"
#include "planning/rounds.h"

namespace tidepool {

/// What a planner may choose from, the largest first; empty: the job runs in its stated rounds, or
/// as a whole. Of several devices they are of the part of one. `change_training`: rounds would.
std::vector<std::int64_t> offered_sizes(const JobSpec& job, bool change_training);

/// Refuses `sub_batch` auto of K-means, which has no rounds.
Result<void> check_chosen_rounds(const JobSpec& job);

/// Of a job in its stated rounds.
JobRounds rounds_of(const Job& job);

}  // namespace tidepool
