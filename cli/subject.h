// What to plan for: a model on a preset, a model measured on this device, or a profile file.
#pragma once

#include <optional>
#include <string>

#include "job.h"
#include "profiling.h"

namespace tidepool::cli {

struct SubjectArguments {
  JobArguments job;
  std::string machine;  ///< a preset; empty: this device
  ProfilingArguments profiling;
  bool foreign = false;
};

/// Adds model, device, preset and profile options to a subcommand.
void add_subject_options(CLI::App& command, SubjectArguments& arguments);

/// What to plan for, and whose times they are.
struct Subject {
  Profile profile;
  std::optional<ProfileSource> source;  ///< none: a preset
};

/// Measuring, where that is what the arguments ask for, stays inside the budget.
Result<Subject> subject_of(const SubjectArguments& arguments, const BudgetArguments& budget);

}  // namespace tidepool::cli
