// Where a plan comes from: a plan file, the cache, or the planner.
#pragma once

#include <optional>
#include <string>

#include "planners/planner.h"
#include "train/cache.h"
#include "train/job.h"

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

/// The budget of a training with a plan file: the file's, where none is given. Refuses a file of
/// another device or program.
Result<BudgetSpec> budget_of_plan(const BudgetSpec& given, const std::string& path, const Job& job);

/// A plan file for running on `subject`'s device: refused when it is of another device or program;
/// `infeasible` when it needs more than the budget. Its times are simulated on the machine and with
/// the op times that the file names.
Result<ObtainedPlan> plan_from_file(const std::string& path, const Profile& subject,
                                    const Budget& budget);

}  // namespace tidepool
