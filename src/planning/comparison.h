// Every planner on one subject, over one budget or a sweep.
#pragma once

#include <functional>

#include "base/progress.h"
#include "planning/comparison_row.h"
#include "planning/planning_spec.h"
#include "planning/subject.h"

namespace tidepool {

/// One budget of the sweep. One that cannot be met is a row as well.
struct ComparedBudget {
  Budget budget;
  std::optional<Error> infeasible;   ///< for the program as it is
  std::optional<Error> of_any_size;  ///< for all sizes that planners may choose from
};

/// By size.
Result<std::vector<ComparedBudget>> compared_budgets(const std::vector<BudgetSpec>& budgets,
                                                     const Subject& subject);

struct Comparisons {
  std::vector<ComparisonRow> rows;
  /// Why the command fails all the same: it was interrupted, or no budget can be met.
  std::optional<Error> ended;
};

/// Every planner in every budget, until `options.stop`; `on_row` gets each row at once.
Result<Comparisons> compare_planners(const Subject& subject,
                                     const std::vector<ComparedBudget>& entries,
                                     const std::vector<std::string>& planners,
                                     const PlannerSpec& spec, const PlannerOptions& options,
                                     ProgressSink& progress,
                                     const std::function<void(const ComparisonRow&)>& on_row);

}  // namespace tidepool
