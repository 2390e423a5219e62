// Options that fill the structs of train/training_spec.h. All of a command's options are checked
// when they are parsed: a malformed size is a usage error that names its option.
#pragma once

#include <string>
#include <vector>

#include "cli11_fwd.h"
#include "job/job_spec.h"
#include "planning/planning_spec.h"
#include "train/training_spec.h"

namespace tidepool::cli {

/// The job's options, with the model as the positional argument, and files of options.
void add_job_options(CLI::App& command, JobSpec& job);
/// --devices, --accumulation.
void add_devices_options(CLI::App& command, JobSpec& job);
/// Of commands without a planner: their --sub-batch is a number.
void state_sub_batch(CLI::App& command);
/// Refuses --sub-batch auto, for commands without a planner.
Result<void> check_sub_batch_is_stated(const JobSpec& job, const char* command);
/// --budget, --host-budget.
void add_size_options(CLI::App& command, BudgetSpec& budget);
/// --host-budget
void add_host_budget_option(CLI::App& command, BudgetSpec& budget);
/// A device size in bytes or percent; `name` such as "--budget".
CLI::Option* add_size_option(CLI::App& command, const std::string& name, SizeOrPercent& size,
                             const std::string& help);
/// --planner, and --time-limit, --evaluations and the planners' own options but those that name
/// files (record_options.h).
void add_planner_options(CLI::App& command, PlannerSpec& planner);
void add_search_options(CLI::App& command, PlannerSpec& planner);
void add_cache_options(CLI::App& command, CacheSpec& cache);
/// Of a command that keeps its plans; behind those of the cache.
void add_replan_option(CLI::App& command, CacheSpec& cache);

/// Options that have no effect beside `option`: giving both is a usage error that names the two.
struct Ignored {
  std::string option;
  std::vector<std::string> others;
};
/// To be called once a command, after its options.
void refuse_ignored(CLI::App& command, std::vector<Ignored> pairs);

}  // namespace tidepool::cli
