// Where a plan comes from: a plan file, the cache, or the planner.
#pragma once

#include <optional>
#include <string>

#include "cache.h"
#include "planners/planner.h"

namespace tidepool::cli {

struct ObtainedPlan {
  Planned planned;
  std::string from;  ///< "file", "cache" or "planner"
  /// Of a file: what its times were predicted from, perhaps another measurement than today's.
  std::optional<Profile> profile;
};

/// Whatever its source, the plan is proved.
Result<ObtainedPlan> obtain_plan(Planner& planner, const PlanRequest& request,
                                 const CacheArguments& arguments);

/// A plan file for running on `subject`'s device: refused when it is of another device or program,
/// or needs more than the budget.
Result<ObtainedPlan> plan_from_file(const std::string& path, const Profile& subject,
                                    const Budget& budget);

}  // namespace tidepool::cli
