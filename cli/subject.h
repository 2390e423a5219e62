// What to plan for: a model on a preset, a model measured on this device, a profile file, or a
// recorded trace.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "infeasible.h"
#include "job.h"
#include "profiling.h"
#include "trace_file.h"

namespace tidepool::cli {

struct SubjectArguments {
  JobArguments job;
  std::string machine;  ///< a preset; empty: this device
  ProfilingArguments profiling;
  TraceArguments trace;
  bool foreign = false;
};

/// Adds model, device, preset and profile options to a subcommand.
void add_subject_options(CLI::App& command, SubjectArguments& arguments);

/// What to plan for, and whose times they are.
struct Subject {
  Profile profile;
  std::optional<ProfileSource> source;  ///< none: a preset or a trace
  /// Of a trace: device bytes that are always taken and that the program does not know of. Planners
  /// get the budget without them; reports count them.
  Bytes resident = 0;
  bool statistics = false;      ///< --sub-batch-statistics is given
  ProgramInRounds in_rounds{};  ///< empty where the program is as it is
};

/// Measuring, where that is what the arguments ask for, stays inside the budget.
Result<Subject> subject_of(const SubjectArguments& arguments, const BudgetArguments& budget);
/// The same for several budgets: it stays inside the least of them that can be met.
Result<Subject> subject_of(const SubjectArguments& arguments,
                           std::span<const BudgetArguments> budgets);

/// The budget of the plan: what the user gives, without the resident bytes.
Result<Budget> budget_of(BudgetArguments arguments, const Subject& subject);

/// The device bytes the user asks for, without the resident ones.
Result<Bytes> device_bytes(const BudgetArguments& arguments, const Subject& subject);

/// An error of planning beside resident bytes, in terms of the whole budget.
Error with_resident(Error error, Bytes resident);

}  // namespace tidepool::cli
