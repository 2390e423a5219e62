// Training as people do it: epochs, evaluation on the test split, checkpoints, resume.
#pragma once

#include "profiling.h"

namespace tidepool::cli {

struct FitArguments {
  std::int64_t epochs = 0;  ///< 0: not asked for
  std::string checkpoint;   ///< written after every epoch and on Ctrl-C; empty: that of `resume`
  std::string resume;
  bool evaluate = true;
  ProfilingArguments profiling;
  std::string plan;  ///< a plan file to run instead of planning; may be empty
};

void add_fit_options(CLI::App& command, FitArguments& arguments);

/// Trains `job` inside the budget up to `epochs` epochs in all. Returns the exit code; on Ctrl-C
/// the state is saved, when a checkpoint is asked for, and the error says how to go on.
Result<int> fit(Job& job, const BudgetArguments& budget, FitArguments arguments, Planner& planner,
                bool json);

}  // namespace tidepool::cli
