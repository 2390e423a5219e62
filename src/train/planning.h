// Where a plan comes from: a plan file, the cache, or the planner.
#pragma once

#include <optional>
#include <string>

#include "planners/planner.h"
#include "train/cache.h"
#include "train/job.h"
#include "train/parallel_plan.h"

namespace tidepool {

struct ObtainedPlan {
  Planned planned;
  std::string from;  ///< "file", "cache" or "planner"
  /// Of a file: what its times were predicted from, perhaps another measurement than today's.
  std::optional<Profile> profile;
};

/// Whatever its source, the plan is proved. `replan`: the cache is not asked. Where the host budget
/// is too small the error names the least one found with which the planner has a plan.
Result<ObtainedPlan> obtain_plan(Planner& planner, const PlanRequest& asked, const Cache& cache,
                                 bool replan, Observer& observer);

/// A budget that no planner can meet: where this one, with algorithms by `policy`, needs more than
/// the least that is named, the error says so and names what is enough for it.
Error for_planner(std::string_view planner, Error unmet, const Program& program, Bytes alignment,
                  AlgorithmPolicy policy);

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
