// Where a plan comes from: the cache or the planner.
#pragma once

#include <optional>
#include <string>

#include "base/observer.h"
#include "planning/cache.h"
#include "planning/make_plan.h"

namespace tidepool {

struct ObtainedPlan {
  Planned planned;
  std::string from;  ///< "file", "cache" or "planner"
  /// Of a file: what its times were predicted from, perhaps another measurement than today's.
  std::optional<Profile> profile;
  /// None: it was not tried beside others.
  std::optional<TrialFigures> tried{};
};

/// Whatever its source, the plan is proved. `replan`: a plan of the cache is no answer; a search
/// without an evaluation limit begins with it all the same, and is never slower. Where the host
/// budget is too small the error names the least one found with which the planner has a plan.
Result<ObtainedPlan> obtain_plan(Planner& planner, const PlanRequest& asked, const Cache& cache,
                                 bool replan, Observer& observer);

}  // namespace tidepool
