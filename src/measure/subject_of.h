// Any subject that a command can be given: a model on a preset or on this device, a profile, a
// program, a recorded trace.
#pragma once

#include <span>
#include <string>

#include "measure/measured_subject.h"
#include "planning/file_subject.h"

namespace tidepool {

struct SubjectSpec : MeasuredSubjectSpec {
  std::string machine;   ///< a preset, or a file with a program; empty: this device
  std::string profile;   ///< a profile file; may be empty
  std::string program;   ///< a program file, planned for on `machine`; may be empty
  TraceSpec trace;       ///< its file may be empty
  bool foreign = false;  ///< a profile may be of another device
};

/// Measuring, where that is what is asked for, stays inside the least of the budgets that can be
/// met. Observer and cache must outlive the subject.
Result<Subject> subject_of(const SubjectSpec& spec, std::span<const BudgetSpec> budgets,
                           const Cache& cache, Observer& observer);
/// The same for one budget.
Result<Subject> subject_of(const SubjectSpec& spec, const BudgetSpec& budget, const Cache& cache,
                           Observer& observer);

}  // namespace tidepool
