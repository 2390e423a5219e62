// A subject that is measured on this device.
#pragma once

#include "planning/planning_spec.h"
#include "subject.h"

namespace tidepool::cli {

/// Measuring stays inside the least of the budgets that can be met. Cache and observer must outlive
/// the subject.
Result<Subject> measured_subject(const SubjectArguments& arguments,
                                 std::span<const BudgetSpec> budgets, const Cache& cache,
                                 Observer& observer);

}  // namespace tidepool::cli
