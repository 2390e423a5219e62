// Every planner on one job, over one budget or a sweep: what `tidepool compare` prints.
#pragma once

#include <functional>

#include "base/progress.h"
#include "comparison_row.h"
#include "job/job_spec.h"
#include "planning/planning_spec.h"
#include "subject.h"

namespace tidepool::cli {

/// One budget of the sweep. One that cannot be met is a row as well.
struct Entry {
  Budget budget;
  std::optional<Error> infeasible;   ///< for the program as it is
  std::optional<Error> of_any_size;  ///< for all sizes that planners may choose from
};

/// By size.
Result<std::vector<Entry>> entries_of(const std::vector<BudgetSpec>& budgets,
                                      const Subject& subject);

struct Comparisons {
  std::vector<ComparisonRow> rows;
  /// Why the command fails all the same: it was interrupted, or no budget can be met.
  std::optional<Error> ended;
};

/// Every planner in every budget; `on_row` gets each row at once.
Result<Comparisons> rows_of(const Subject& subject, const JobSpec& job,
                            const std::vector<Entry>& entries,
                            const std::vector<std::string>& planners, const PlannerSpec& spec,
                            const PlannerOptions& options, ProgressSink& progress,
                            const std::function<void(const ComparisonRow&)>& on_row);

}  // namespace tidepool::cli
