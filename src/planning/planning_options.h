// The options of planning_spec.h as records, each with the field that it sets. Those of a planner
// alone are the planner's (planners/settings.h).
#pragma once

#include <span>
#include <vector>

#include "base/option.h"
#include "planning/planning_spec.h"

namespace tidepool {

/// An option of a struct.
template <class Spec>
struct OptionOf {
  OptionRecord record;
  /// The value is one of the record's.
  void (*set)(Spec& spec, const OptionValue& value);
};

const OptionOf<BudgetSpec>& budget_option();
const OptionOf<BudgetSpec>& host_budget_option();

const OptionOf<PlannerSpec>& planner_option();
/// How long planners search.
std::span<const OptionOf<PlannerSpec>> search_options();

const OptionOf<CacheSpec>& no_cache_option();
const OptionOf<CacheSpec>& reprofile_option();
const OptionOf<CacheSpec>& replan_option();

/// Of all of the above.
std::span<const OptionRecord> planning_records();

}  // namespace tidepool
