// Plans that are compared run in turn on the device that they are for.
#pragma once

#include <span>
#include <vector>

#include "base/observer.h"
#include "cost/machine.h"
#include "job/job_spec.h"
#include "schedule/schedule.h"

namespace tidepool {

struct MeasuredPlan {
  Nanos time{};  ///< an iteration at its median; 0: it was interrupted before one was measured
  std::int64_t iterations = 0;
};

/// Trains the job with one plan after the other, a block of iterations each, until each has had its
/// blocks: noise of the machine hits all of them. The plans are of the job in its rounds, on one
/// device. Fails as making the job does; throws DeviceError when the device fails.
Result<std::vector<MeasuredPlan>> measure_plans(const JobSpec& spec, const Machine& machine,
                                                std::span<const Plan* const> plans,
                                                Observer& observer);

}  // namespace tidepool
