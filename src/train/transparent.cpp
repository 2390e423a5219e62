#include "train/transparent.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/at.h"
#include "base/counted.h"
#include "base/median.h"
#include "base/spread.h"
#include "base/system_memory.h"
#include "measure/expected_memory.h"
#include "measure/link_speed.h"
#include "measure/measure.h"
#include "measure/measured_subject.h"
#include "planners/registry.h"
#include "planners/settings.h"
#include "planning/learning.h"
#include "session/session_error.h"
#include "train/diverged.h"
#include "train/in_memory.h"
#include "train/op_by_op.h"
#include "train/training_run.h"
#include "train/training_state.h"
#include "train/without_limit.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

/// What nothing here could do anything with.
Result<void> check_transparent(const TrainingSpec& spec) {
  const auto refuse = [](const std::string& why) {
    return fail(ErrorCode::usage, "`transparent` " + why);
  };
  if (!spec.budget.limited() && !spec.budget.memory.given()) {
    return refuse("needs a `budget`, or `memory` and `spill`: without one nothing is to plan");
  }
  if (!spec.plan.empty()) return refuse("finds its plan while it runs: it takes no `plan`");
  if (!spec.profile.empty()) return refuse("times ops while it runs: it takes no `profile`");
  if (spec.graph > 0) return refuse("calls ops one by one: it takes no `graph`");
  if (spec.job.devices > 1) return refuse("runs on one device, not on several `devices`");
  if (spec.job.choose_sub_batch) return refuse("has no planner before it runs: state `sub_batch`");
  if (spec.job.choose_algorithms || spec.job.algorithms == AlgorithmPolicy::fastest) {
    return refuse(
        "knows no times before it runs: `algorithms` must be least-workspace or heuristic");
  }
  if (spec.epochs > 0 || !spec.resume.empty() || !spec.checkpoint.empty()) {
    return refuse("takes `iterations`, not `epochs`");
  }
  if (spec.job.device.has_file_tier()) return refuse("has no file behind its host: `file_tier`");
  if (spec.iterations < 1) return fail(ErrorCode::usage, "`iterations` must be at least 1");
  return check_memory(spec);
}

Result<void> check_planner(const PlannerSpec& planner) {
  if (auto made = make_planner(planner.name); !made) return fail(made.error());
  return check_planner_settings(std::span(&planner.name, 1), planner.values);
}

/// What leaves the device, half of which plans may use: the rest is for blocks without a plan. A
/// file is no larger than there is room for beside the one with the values between runs.
Bytes bytes_away(const TrainingSpec& spec, const Machine& machine,
                 const TransparentReport& report) {
  if (spec.budget.host > 0) return spec.budget.host;
  const Bytes unit = machine.alignment();
  const Bytes usual = align_up(3 * report.unlimited_peak + 16 * kMiB, unit);
  const Bytes room = report.memory ? machine.spaces[at(machine.away())].bytes : 0;
  if (room == 0) return usual;
  return std::clamp((room - report.memory->state) / unit * unit, unit, usual);
}

class TransparentTraining {
 public:
  TransparentTraining(const Job& job, const TrainingSpec& spec, Machine machine,
                      TransparentReport& report, TrainingObserver& observer)
      : job_(job),
        spec_(spec),
        machine_(std::move(machine)),
        algorithms_(choose_algorithms(job.program(), algorithms_of(job.spec()))),
        report_(report),
        observer_(observer) {}

  Result<void> run() {
    auto runner = job_.make_runner();
    if (!runner) return fail(runner.error());
    runner_ = std::move(*runner);
    try {
      if (auto ran = run_session(); !ran) return ran;
    } catch (const SessionError& error) {
      return fail(error.error());
    }
    report_.losses = runner_->losses();
    report_.state_crc32 = checksum(*runner_);
    return compare();
  }

 private:
  Result<void> run_session() {
    SessionSpec asked;
    asked.device = job_.make_device(machine_);
    Device& device = *asked.device;
    device.run_kernels_here();
    asked.machine = machine_;
    asked.budget = report_.budget;
    asked.away_bytes = bytes_away(spec_, machine_, report_);
    asked.planner = spec_.planner;
    asked.stop = planning_stop();
    // Planned between iterations: the first ones are few, and not slower for it.
    asked.plan_beside = false;
    Session session(std::move(asked));
    OpByOp training(job_.program(), algorithms_, session, *runner_);
    training.load();
    const FileTraffic before = device.file_traffic();
    for (std::int64_t i = 0; i < spec_.iterations; ++i) {
      if (observer_.stop_requested()) return interrupted(i);
      iteration(session, training, i);
    }
    if (observer_.stop_requested()) return interrupted(spec_.iterations);
    // Handing out the values is no part of an iteration: it leaves the plan.
    report_.session = session.report();
    report_.iterations = spec_.iterations;
    tell_file(before, device.file_traffic());
    training.store();
    report_.session.device_peak = session.report().device_peak;
    report_.planned = spread_of(times_planned_);
    if (!times_unplanned_.empty()) report_.unplanned = median(times_unplanned_);
    return {};
  }

  /// Planning ends before it takes more than the memory of the whole process.
  [[nodiscard]] Stop planning_stop() const {
    if (!report_.memory) return observer_.stop();
    return where_memory_ends(report_.memory->process.limit, observer_.stop());
  }

  void tell_file(const FileTraffic& before, FileTraffic now) {
    if (!spec_.job.device.spills()) return;
    now.written.bytes -= before.written.bytes;
    now.read.bytes -= before.read.bytes;
    report_.file.emplace();
    report_.file->traffic = std::move(now);
    report_.file->iterations = spec_.iterations;
  }

  void iteration(Session& session, OpByOp& training, std::int64_t i) {
    const std::int64_t reactive = session.report().reactive_ops;
    const auto start = Clock::now();
    training.iteration(i);
    const Nanos time = Clock::now() - start;
    tell(i, time, "inside the budget", 0);
    observer_.iteration({i + 1, spec_.iterations, time});
    if (session.report().reactive_ops == reactive) {
      if (report_.planned_iterations++ == 0) report_.first_planned = i + 1;
      times_planned_.push_back(time);
      return;
    }
    if (i > 0) times_unplanned_.push_back(time);
    // Of the first iteration times are those of cold caches.
    if (i < 2 || i + 1 == spec_.iterations) return;
    const auto planning = Clock::now();
    session.plan_now();
    if (report_.memory) trim_heap();
    report_.planning += Clock::now() - planning;
  }

  [[nodiscard]] Result<void> interrupted(std::int64_t done) const {
    return fail(ErrorCode::interrupted,
                fmt::format("interrupted after {}; nothing was saved", counted(done, "iteration")));
  }

  /// `before`: iterations of the training before this one.
  void tell(std::int64_t i, Nanos time, const char* which, std::int64_t before) {
    const std::int64_t total = spec_.iterations;
    const std::int64_t all = spec_.comparison == Comparison::none ? total : 2 * total;
    observer_.update(
        static_cast<double>(before + i + 1) / static_cast<double>(all),
        fmt::format("{}: iteration {}/{}, {}", which, i + 1, total, format_time(time)));
  }

  /// The same training as a plan that keeps everything.
  Result<void> compare() {
    if (spec_.comparison == Comparison::none || report_.memory) return {};
    const auto kept = kept_plan(job_.program(), machine_, algorithms_, no_limit());
    if (!kept) return fail(ErrorCode::infeasible, "nothing can be kept without a budget");
    auto runner = job_.make_runner();
    if (!runner) return fail(runner.error());
    TrainingRun without(job_, machine_, kept->plan, std::move(*runner));
    without.executor().enter();
    const RunReport ran = without.run(
        spec_.iterations, observer_.stop(),
        [&](std::int64_t i, Nanos time) { tell(i, time, "without a budget", spec_.iterations); });
    if (ran.cancelled) {
      return fail(ErrorCode::interrupted, "interrupted while comparing; nothing was saved");
    }
    without.executor().exit();
    Baseline baseline;
    baseline.time = without.spread();
    if (spec_.comparison == Comparison::bits) {
      baseline.identical = identical(job_.program(), without.runner(), *runner_);
    }
    report_.baseline = baseline;
    return {};
  }

  const Job& job_;
  const TrainingSpec& spec_;
  Machine machine_;
  AlgorithmChoice algorithms_;
  TransparentReport& report_;
  TrainingObserver& observer_;
  std::unique_ptr<nn::TrainingRunner> runner_;
  std::vector<Nanos> times_planned_;
  std::vector<Nanos> times_unplanned_;
};

/// The subject of a training in the RAM of the process: code and heap as they are now, or will be.
/// Inputs lie among the session's blocks, so that the host's memory holds nothing.
Result<Subject> subject_in_memory(const std::shared_ptr<Job>& job, const TrainingSpec& spec) {
  Subject subject = subject_of_job(job, spec.job);
  if (!spec.budget.memory.given()) return subject;
  const auto limit = memory_of(spec.budget.memory);
  if (!limit) return fail(limit.error());
  auto memory = expected_memory(*job, *limit);
  if (!memory) return fail(memory.error());
  memory->host = 0;
  // The arena is not made smaller when planning has taken more than was expected.
  constexpr Bytes kMoreOfPlanning = 8 * kMiB;
  memory->resident += kMoreOfPlanning;
  subject.memory = *memory;
  return subject;
}

Result<void> check_device(const Job& job) {
  if (!job.make_device({})->enqueues_kernels()) return {};
  return fail(ErrorCode::usage,
              fmt::format("`transparent` calls kernels on its own thread, and those of device '{}' "
                          "are not called so; take `device` cpu",
                          job.kind().name));
}

}  // namespace

namespace {

Result<TransparentReport> train_op_by_op(const TrainingSpec& spec, TrainingObserver& observer) {
  if (spec.budget.memory.given()) spare_memory();
  auto made = Job::make(spec.job, observer);
  if (!made) return fail(made.error());
  const auto job = std::make_shared<Job>(std::move(*made));
  if (auto sound = check_device(*job); !sound) return fail(sound.error());
  const auto subject = subject_in_memory(job, spec);
  if (!subject) return fail(subject.error());
  const auto budget = budget_for(*subject, spec.budget, spec.planner.name);
  if (!budget) return fail(budget.error());
  const NothingToLose scope(observer);
  auto machine = device_machine(*job, *budget, spec.cache, observer);
  if (!machine) return fail(machine.error());
  TransparentReport report;
  report.device = job->kind().name;
  report.data = job->data().name();
  report.threads = job->threads();
  report.machine = *machine;
  report.budget = budget->device;
  report.unlimited_peak = subject->unlimited_peak();
  if (subject->memory) report.memory = memory_report(*subject->memory, job->program());
  TransparentTraining training(*job, spec, std::move(*machine), report, observer);
  if (auto ran = training.run(); !ran) return fail(ran.error());
  if (report.memory) report.memory->measure();
  warn_if_diverged(report.losses, 0, observer);
  return report;
}

}  // namespace

Result<TransparentReport> run_transparently(const TrainingSpec& spec, TrainingObserver& observer) {
  if (auto sound = check_transparent(spec); !sound) return fail(sound.error());
  if (auto sound = check_planner(spec.planner); !sound) return fail(sound.error());
  const bool apart = spec.budget.memory.given() && spec.comparison == Comparison::times;
  if (!apart) return train_op_by_op(spec, observer);
  const auto without = time_without_limit(spec, observer);
  if (!without) return fail(without.error());
  auto report = train_op_by_op(spec, observer);
  if (report) {
    report->baseline.emplace();
    report->baseline->time = *without;
  }
  return report;
}

}  // namespace tidepool
