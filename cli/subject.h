// What to plan for: a model on a preset, a model measured on this device, a profile file, a program
// file on a machine given apart, or a recorded trace.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cli11_fwd.h"
#include "job/job_spec.h"
#include "measure/profiling.h"
#include "nn/data_parallel.h"
#include "planners/workload.h"
#include "planning/budget.h"
#include "planning/measurement.h"
#include "planning/planning_spec.h"
#include "planning/process_memory.h"
#include "rounds_report.h"
#include "spec_options.h"
#include "trace_file.h"

namespace tidepool::cli {

struct SubjectArguments {
  JobSpec job;
  std::string machine;  ///< a preset, or a file with a program; empty: this device
  std::string profile;  ///< a profile file; may be empty
  std::string program;  ///< a program file, planned for on `machine`; may be empty
  CacheSpec cache;
  TraceArguments trace;
  bool foreign = false;
  /// This device with its links, where they are known: they are not measured again.
  std::optional<Machine> links{};
  bool choosing = false;    ///< a planner chooses algorithms: the times of all are wanted
  bool may_choose = false;  ///< the command takes --sub-batch auto
  /// Where no budget can be met: a subject that was not measured, instead of an error.
  bool unmeasured = false;
};

/// Adds model, device, preset and profile options to a subcommand.
void add_subject_options(CLI::App& command, SubjectArguments& arguments);
/// What has no effect beside the options of subjects, for `refuse_ignored`.
std::vector<Ignored> ignored_by_subjects();

/// What to plan for, and whose times they are.
struct Subject {
  Profile profile;
  std::optional<ProfileSource> source;  ///< none: a preset or a trace
  /// Of a trace: device bytes that are always taken and that the program does not know of. Planners
  /// get the budget without them; reports count them.
  Bytes resident = 0;
  bool statistics = false;      ///< --sub-batch-statistics is given
  ProgramInRounds in_rounds{};  ///< empty where the program is as it is
  bool batch_norm = false;      ///< rounds take statistics of their own
  /// What planners choose from that do; empty: there is nothing to choose. Where no budget is
  /// enough for the profile's program itself, that has no times then.
  std::vector<std::int64_t> offered{};
  /// Of these, each measured when it is asked for inside the least of the budgets that can be met
  /// with it.
  std::shared_ptr<RoundsWorkload> rounds{};

  bool may_choose = false;  ///< errors of budgets may recommend --sub-batch auto
  /// As `resolve_budget` takes it; `stated`: without the sizes on offer.
  [[nodiscard]] JobRounds job_rounds(bool stated = false) const;
  /// What percentages refer to, with the resident bytes.
  [[nodiscard]] Bytes unlimited_peak() const;
  /// Without a budget: of a plan for `program`, or of the whole batch where that is faster.
  [[nodiscard]] Nanos unlimited_time(const Program& program, AlgorithmPolicy policy) const;
  /// Of a plan for `program`.
  [[nodiscard]] RoundsReport report_of(const Program& program, AlgorithmPolicy policy) const;
  /// Of several devices: all of them. The profile is of one, with its part of their bus.
  using SharedParallel = std::shared_ptr<const nn::DataParallel>;
  SharedParallel parallel{};
  /// The same in the rounds that a planner chose; what `parallel` was is then gone.
  std::function<Result<SharedParallel>(std::int64_t sub_batch)> parallel_in_rounds{};
  std::optional<Machine> all{};
  /// An iteration of the whole batch on one device without a budget; none: not known.
  std::optional<Nanos> alone{};
  /// Of a budget of the whole process: what it leaves for the arena. Expected: the training is not
  /// there to be looked at.
  std::optional<ProcessMemory> memory{};
};

/// Measuring, where that is what the arguments ask for, stays inside the least of the budgets that
/// can be met.
Result<Subject> subject_of(const SubjectArguments& arguments, std::span<const BudgetSpec> budgets,
                           const Cache& cache, Observer& observer);
/// The same for one budget.
Result<Subject> subject_of(const SubjectArguments& arguments, const BudgetSpec& budget,
                           const Cache& cache, Observer& observer);

/// The budget of the plan: what the user gives, without the resident bytes. Can be met by some size
/// on offer; `stated`: by the profile's program.
Result<Budget> budget_of(BudgetSpec spec, const Subject& subject, bool stated = false);

/// The device bytes the user asks for, without the resident ones.
Bytes device_bytes(const BudgetSpec& spec, const Subject& subject);

/// An error of planning beside resident bytes, or inside the memory of a process, in terms of the
/// whole.
Error with_resident(Error error, const Subject& subject);

}  // namespace tidepool::cli
