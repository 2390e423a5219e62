#include "planning/planning_spec.h"

#include "planners/registry.h"
#include "planners/settings.h"

namespace tidepool {

PlannerOptions planner_options(const PlanTerms& terms, const PlannerSpec& planner) {
  PlannerOptions options;
  options.seed = terms.seed;
  options.algorithms = terms.algorithms;
  options.may.algorithms = terms.choose_algorithms;
  options.may.swap = terms.swap;
  options.may.recompute = terms.recompute;
  options.may.streaming = true;  // every budget that can be met is met
  options.time_limit = planner.time_limit.value_or(usual_time_limit(planner.name));
  options.usual_time = !planner.time_limit;
  options.evaluation_limit = planner.evaluations;
  options.values = without_files(planner.values);
  return options;
}

}  // namespace tidepool
