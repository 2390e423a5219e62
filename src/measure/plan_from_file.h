// Plans of files, for jobs of this device.
#pragma once

#include <string>

#include "job/job.h"
#include "planning/obtain_plan.h"
#include "planning/parallel_plan.h"
#include "planning/planning_spec.h"

namespace tidepool {

/// The budget of a training with a plan file: the file's, where none is given. Refuses a file of
/// another device, program or number of devices.
Result<BudgetSpec> budget_of_plan(const BudgetSpec& given, const std::string& path, const Job& job);

/// A plan file for running on `subject`'s device: refused when it is of another device or program;
/// `infeasible` when it needs more than the budget. Its times are simulated on the machine and with
/// the op times that the file names.
Result<ObtainedPlan> plan_from_file(const std::string& path, const Profile& subject,
                                    const Budget& budget);

/// What runs on several devices, and the plan of one device's part that it is composed of.
struct ObtainedParallelPlan {
  ObtainedPlan part;
  ParallelPlan whole;
};

/// The same of a job with several devices, of which `machine` has all. Nothing is composed: the
/// file's plan is proved and runs as it is.
Result<ObtainedParallelPlan> parallel_plan_from_file(const std::string& path, const Job& job,
                                                     const Machine& machine, const Budget& budget);

}  // namespace tidepool
