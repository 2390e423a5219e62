#include "spec_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "context.h"
#include "job/job_options.h"
#include "job/job_spec.h"
#include "nn/models/model.h"
#include "planning/planning_options.h"
#include "planning/planning_spec.h"
#include "record_options.h"
#include "spec_file.h"

namespace tidepool::cli {
namespace {

void add_job_records(CLI::App& command, JobSpec& job, std::span<const JobOption> options) {
  for (const JobOption& option : options) add_option_of(command, option, job);
}

}  // namespace

void state_sub_batch(CLI::App& command) {
  command.get_option("--sub-batch")
      ->description(
          "samples a round: an iteration runs its batch in rounds and sums their gradients "
          "(default: the whole batch)")
      ->type_name("N");
}

Result<void> check_sub_batch_is_stated(const JobSpec& job, const char* command) {
  if (!job.choose_sub_batch) return {};
  return fail(ErrorCode::usage,
              fmt::format("--sub-batch auto: `tidepool {}` has no planner that could choose; give "
                          "a number of samples",
                          command));
}

void add_job_options(CLI::App& command, JobSpec& job) {
  // Callbacks run in the order of the options: a stated batch comes after the model's own.
  const auto own_batch = [&job](const std::string& name) {
    const auto model = nn::find_model(name);
    if (model && (*model)->batch > 0) job.batch = (*model)->batch;
  };
  command.add_option("model", job.model, "model to train (see `tidepool models`)")
      ->required()
      ->each(own_batch);
  add_job_records(command, job, job_options());
  add_seed_option(command, job.seed,
                  "of initial weights, sample order, dropout and skipped branches");
  add_spec_file_options(command);
}

void add_devices_options(CLI::App& command, JobSpec& job) {
  add_job_records(command, job, parallel_options());
  command.get_option("--accumulation")->needs("--devices");
}

CLI::Option* add_size_option(CLI::App& command, const std::string& name, SizeOrPercent& size,
                             const std::string& help) {
  const auto parse = [&size, name](const std::string& text) {
    const auto parsed = parse_size_or_percent(text);
    if (!parsed) throw CLI::ValidationError(name, parsed.error().message);
    size = *parsed;
  };
  auto* option = command.add_option_function<std::string>(name, parse, help)->type_name("SIZE");
  if (size.percent >= 0) option->default_str(fmt::format("{:.6g}%", size.percent));
  return option;
}

void add_size_options(CLI::App& command, BudgetSpec& budget) {
  add_option_of(command, budget_option(), budget);
  add_host_budget_option(command, budget);
}

void add_host_budget_option(CLI::App& command, BudgetSpec& budget) {
  add_option_of(command, host_budget_option(), budget);
}

void add_planner_options(CLI::App& command, PlannerSpec& planner) {
  add_option_of(command, planner_option(), planner);
  add_search_options(command, planner);
}

void add_search_options(CLI::App& command, PlannerSpec& planner) {
  for (const auto& option : search_options()) add_option_of(command, option, planner);
  add_planner_records(command, planner);
}

void add_cache_options(CLI::App& command, CacheSpec& cache) {
  CLI::Option* off = add_option_of(command, no_cache_option(), cache);
  add_option_of(command, reprofile_option(), cache)->excludes(off);
}

void add_replan_option(CLI::App& command, CacheSpec& cache) {
  add_option_of(command, replan_option(), cache)->excludes(command.get_option("--no-cache"));
}

void refuse_ignored(CLI::App& command, std::vector<Ignored> pairs) {
  command.parse_complete_callback([&command, pairs = std::move(pairs)] {
    const auto given = [&](const std::string& name) {
      const CLI::Option* option = command.get_option_no_throw(name);
      return option != nullptr && option->count() > 0;
    };
    for (const Ignored& pair : pairs) {
      if (!given(pair.option)) continue;
      for (const std::string& other : pair.others) {
        if (given(other)) throw CLI::ExcludesError(pair.option, other);
      }
    }
  });
}

}  // namespace tidepool::cli
