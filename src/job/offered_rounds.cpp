#include "job/offered_rounds.h"

#include <fmt/format.h>

#include "job/job_spec.h"
#include "nn/models/model.h"

namespace tidepool {

std::vector<std::int64_t> offered_sizes(const JobSpec& job, bool change_training) {
  const std::int64_t part = job.batch / job.devices;
  if (job.sub_batch > 0 || part <= 1 || !job.choose_sub_batch) return {};
  if (change_training && !job.sub_batch_statistics) return {};
  return round_sizes(part);
}

Result<void> check_chosen_rounds(const JobSpec& job) {
  if (!job.choose_sub_batch) return {};
  if (const auto model = nn::find_model(job.model); model && (*model)->clusters) {
    return fail(ErrorCode::usage,
                fmt::format("`sub_batch`: {} has no rounds; its points lie in chunks", job.model));
  }
  return {};
}

JobRounds rounds_of(const Job& job) {
  return {job.program(), job.spec().sub_batch_statistics,
          [&job](std::int64_t sub_batch, bool statistics) {
            return job.in_rounds(sub_batch, statistics);
          }};
}

}  // namespace tidepool
