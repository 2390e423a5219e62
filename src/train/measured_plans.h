// Plans that are compared run in turn on the device that they are for, and once more what is
// planned by what they took.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/observer.h"
#include "base/spread.h"
#include "cost/profile.h"
#include "job/job_spec.h"
#include "planning/make_plan.h"
#include "planning/process_memory.h"
#include "schedule/schedule.h"
#include "train/time_model.h"

namespace tidepool {

struct MeasuredPlan {
  Nanos time{};  ///< an iteration at its median; 0: it was interrupted before one was measured
  Nanos least{};
  Nanos most{};
  Spread spread{};
  std::int64_t iterations = 0;
  bool has_room =
      true;  ///< in the memory of the process beside the other plans; else it did not run
};

/// A plan by the times of those that ran: Note [Trials] in trials.h.
struct CorrectedPlan {
  std::size_t fastest = 0;  ///< of those, by its place
  Nanos predicted{};        ///< by those times
  MeasuredPlan measured;
  MeasuredPlan again;  ///< of the fastest, in turn with this one
};

struct MeasuredPlans {
  std::vector<MeasuredPlan> plans;       ///< in the order given
  std::vector<CorrectedPlan> corrected;  ///< of budgets for which there is one
};

struct PlansToMeasure {
  std::vector<const Plan*> plans;
  std::vector<std::size_t> budgets;  ///< of each: plans of the same are corrected together
  /// A plan by the times of all plans of a budget; `fastest` is the place of one of them.
  std::function<Result<std::optional<Planned>>(const TimeModel& now, std::size_t fastest)> correct;
};

/// Trains the job with one plan after the other, a block of iterations each, until each has had its
/// blocks: noise of the machine hits all of them. The plans are of the job in its rounds, on one
/// device, which is opened once with the largest of their arenas. Then the same with what is made
/// of their times, if anything, and the fastest of its budget. With `memory` they have to fit into
/// what the process takes by now. Fails as making the job and planning do; throws DeviceError when
/// the device fails.
Result<MeasuredPlans> measure_plans(const JobSpec& spec, const Profile& profile,
                                    const PlansToMeasure& asked,
                                    const std::optional<ProcessMemory>& memory, Observer& observer);

}  // namespace tidepool
