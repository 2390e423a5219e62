// What the plans of a comparison take when they run on this device.
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/observer.h"
#include "measure/subject_of.h"
#include "planning/comparison.h"

namespace tidepool::cli {

/// A usage error where there is nothing to run the plans on, or no model to train with them.
Result<void> check_measurable(const SubjectSpec& subject);

/// What `auto` plans for a budget by the times of the plans that were measured.
struct CorrectedRow {
  ComparisonRow plan;   ///< its budget, predicted and measured times
  ComparisonRow again;  ///< the fastest of that budget, which took turns with it
};

/// Trains with the plans in the rounds of the subject, in turn with each other; then with what is
/// planned within `options` by what they took.
Result<std::vector<CorrectedRow>> measure_rows(const JobSpec& asked, const Subject& subject,
                                               const std::vector<ComparedBudget>& entries,
                                               PlannerOptions options, Comparisons& all,
                                               Observer& observer);

/// Sets `measured_ms`, the least and the most, `measured_iterations` and `prediction_error`.
void add_measured(Json& json, const ComparisonRow& row);
/// Lines for budgets in which another plan is clearly faster than the one that was predicted to be
/// fastest: by its median than that one's fastest iteration. Empty where there is none.
std::string other_than_predicted(const std::vector<ComparisonRow>& rows);
/// `corrected`: those that `measure_rows` returned.
void print_measured(const std::vector<ComparisonRow>& rows,
                    const std::vector<CorrectedRow>& corrected, std::size_t width);
/// The same as JSON.
Json corrected_json(const std::vector<CorrectedRow>& corrected);

}  // namespace tidepool::cli
