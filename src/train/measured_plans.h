// Plans that are compared run in turn on the device that they are for.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/observer.h"
#include "cost/machine.h"
#include "job/job_spec.h"
#include "planning/process_memory.h"
#include "schedule/schedule.h"

namespace tidepool {

struct MeasuredPlan {
  Nanos time{};  ///< an iteration at its median; 0: it was interrupted before one was measured
  Nanos least{};
  Nanos most{};
  std::int64_t iterations = 0;
  bool has_room =
      true;  ///< in the memory of the process beside the other plans; else it did not run
};

/// Trains the job with one plan after the other, a block of iterations each, until each has had its
/// blocks: noise of the machine hits all of them. The plans are of the job in its rounds, on one
/// device, which is opened once with the largest of their arenas. With `memory` they have to fit
/// into what the process takes by now. Fails as making the job does; throws DeviceError when the
/// device fails.
Result<std::vector<MeasuredPlan>> measure_plans(const JobSpec& spec, const Machine& machine,
                                                std::span<const Plan* const> plans,
                                                const std::optional<ProcessMemory>& memory,
                                                Observer& observer);

}  // namespace tidepool
