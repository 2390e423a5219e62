// How little time and memory swapping and recomputation could do with, at best.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "base/observer.h"
#include "planning/proven_gap.h"
#include "planning/saved_plan.h"
#include "planning/subject.h"

namespace tidepool {

/// Of a subject with resident bytes these are in all sizes.
struct Bounds {
  Bytes peak = 0;
  Budget budget;
  OverheadBound overhead;     ///< of swapping alone
  OverheadBound recomputing;  ///< and with recomputation
  std::string unknown;        ///< why one of them is not known; empty where both are
  FluidLoad least_load;
  Nanos took{};
  std::optional<Nanos> plan_time;
  double gap = 0;            ///< of the plan
  bool not_covered = false;  ///< there is a plan, and the bound does not hold for it

  /// What the weaker of both is by.
  [[nodiscard]] BoundBy weaker() const { return std::max(overhead.by, recomputing.by); }
};

/// By linear programs that take up to `time_limit` together; what takes longer gets a weaker bound
/// (bound/tightest.h). Fails with `infeasible` where no schedule that only swaps fits.
Result<Bounds> bounds_of(const Subject& subject, const BudgetSpec& budget, Nanos time_limit,
                         Observer& observer);

/// The same for a plan's program and budget, and how far the plan, which is proved first, is from
/// them. A plan below the bound is an internal error (`check_failed`).
Result<Bounds> bounds_of(const SavedPlan& saved, Nanos time_limit, Observer& observer);

}  // namespace tidepool
