#include "train/epochs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <span>

#include "base/counted.h"
#include "base/system_memory.h"
#include "planning/make_plan.h"
#include "train/diverged.h"
#include "train/predicted_run.h"
#include "train/training_observer.h"
#include "train/training_run.h"
#include "train/training_spec.h"

namespace tidepool {
namespace {

/// One device with one arena of each kind for all epochs and evaluations: the training's state
/// moves to its runner and back between them.
class Epochs {
 public:
  Epochs(Job& job, const TrainingSpec& spec, Planner& planner, TrainingReport& report,
         TrainingObserver& observer)
      : job_(job),
        spec_(spec),
        report_(report),
        start_(report.start),
        observer_(observer),
        total_(spec.epochs * job.iterations_per_epoch()),
        drift_(planned_for(report.start)),
        trials_(job, spec, planner, report.start, observer,
                {job, report.memory ? &report.memory->process : nullptr,
                 [this] {
                   if (!training_) return;
                   training_->executor().exit();
                   close_device();
                 },
                 &evaluation_plan_}) {}

  Result<void> resume(nn::CheckpointFile checkpoint) {
    first_ = next_ = checkpoint.checkpoint().next_iteration;
    resumed_ = std::move(checkpoint);
    if (next_ < total_) return {};
    return fail(ErrorCode::usage, fmt::format("{} has finished {} of {}: nothing is left; "
                                              "ask for more `epochs`",
                                              spec_.resume, next_, counted(total_, "iteration")));
  }

  /// Plans the evaluation, where there is a test split, and opens the device for both.
  Result<void> open(const nn::SampleSource* test, Planner& planner) {
    if (test != nullptr) {
      if (auto prepared = plan_evaluation(planner); !prepared) return prepared;
      auto runner = nn::EvaluationRunner::create(*evaluation_program_, job_.kernels(), *test);
      if (!runner) return fail(runner.error());
      evaluation_runner_ = std::move(*runner);
    }
    auto runner = job_.make_runner(total_, first_);
    if (!runner) return fail(runner.error());
    if (resumed_) {
      if (auto restored = restore(*resumed_, **runner); !restored) return restored;
      resumed_.reset();
    }
    open_device(std::move(*runner));
    return {};
  }

  /// Where the disk has become slower or faster, and that takes time: a plan for it, from the next
  /// iteration on. The device is closed meanwhile: planning takes memory too.
  void follow_disk(Planner& planner) {
    const auto change = drift_.change();
    // A plan from a file is what the user wants to run.
    if (!change || !report_.file || !spec_.plan.empty()) return;
    // Trials plan for the disk as it is, too.
    if (trials_.running() || hides_copies(job_, *change, start_)) return;
    close_device();
    observer_.update(0, "planning for the disk as it is now");
    const auto planned = plan_for_disk(job_, spec_, *change, planner, start_, observer_);
    if (report_.memory) trim_heap();
    if (planned) {
      drift_ = DiskDrift(planned_for(start_));
      report_.totals = totals_of(job_.program(), start_.lowered().plan);
      DriftReport& drift = report_.file->drifts.back();
      drift.iteration = next_;  // what was planned for, which was not yet so when it was told
      drift.disk = *change;
      drift.planned_again = start_.iteration_time();
    } else if (!observer_.stop_requested()) {
      observer_.notice(Notice::disk_speed_changed,
                       fmt::format("no other plan was found for the disk, so this one goes on: {}",
                                   planned.error().message));
    }
    open_device(std::move(runner_));
  }

  /// To the end of the epoch, or to where the observer stops it.
  Result<void> train_epoch() {
    const std::int64_t per_epoch = job_.iterations_per_epoch();
    const std::int64_t epoch = next_ / per_epoch;
    const std::int64_t count = (epoch + 1) * per_epoch - next_;
    const auto start = std::chrono::steady_clock::now();
    training_->executor().enter();
    const auto told = [&](std::int64_t i, Nanos time) {
      const std::int64_t done = first_ + i + 1;
      observer_.update(static_cast<double>(done) / static_cast<double>(total_),
                       fmt::format("epoch {}/{}: iteration {}/{}, {}", epoch + 1, spec_.epochs,
                                   done - epoch * per_epoch, per_epoch, format_time(time)));
      observer_.iteration({done, total_, time});
      if (!report_.file) return;
      drift_.iteration(device_->file_traffic());
      report_.file->watch(drift_, done, start_.iteration_time(), observer_);
    };
    const auto ran = run(count, told);
    if (!ran) return fail(ran.error());
    const std::int64_t iterations = *ran;
    training_->executor().exit();
    const auto losses =
        std::span(training_->runner().losses()).subspan(static_cast<std::size_t>(next_ - first_));
    if (!diverged_) diverged_ = warn_if_diverged(losses, next_, observer_);
    next_ += iterations;
    if (training_->measured() > 0) {
      report_.measured = training_->spread();
      report_.measured_iterations = training_->measured();
    }
    report_.arena_peak = std::max(report_.arena_peak, training_->executor().arena_peak());
    EpochReport& r = report_.epochs.emplace_back();
    r.epoch = epoch + 1;
    r.epochs = spec_.epochs;
    r.iterations = iterations;
    r.all_iterations = per_epoch;
    for (const float loss : losses) r.loss += static_cast<double>(loss);
    r.loss /= std::max<double>(1, static_cast<double>(iterations));
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return {};
  }

  [[nodiscard]] Result<void> save() const {
    if (checkpoint().empty()) return {};
    return save_checkpoint(job_, chosen_algorithms(job_.program(), start_.lowered().plan), next_,
                           training_->runner(), checkpoint());
  }

  Result<void> evaluate() {
    if (!evaluation_) return {};
    if (auto taken = evaluation_runner_->take_values(training_->runner()); !taken) return taken;
    evaluation_->set_next_iteration(0);
    evaluation_->enter();
    const RunReport run = evaluation_->run(evaluation_runner_->iterations(), observer_.stop());
    if (!run.cancelled) report_.epochs.back().test = evaluation_runner_->result();
    report_.arena_peak = std::max(report_.arena_peak, evaluation_->arena_peak());
    return {};
  }

  [[nodiscard]] bool finished() const { return next_ >= total_; }

  [[nodiscard]] tl::unexpected<Error> stopped() const {
    if (finished()) {
      return fail(
          ErrorCode::interrupted,
          fmt::format("interrupted in the evaluation after the last epoch; the training is "
                      "finished{}",
                      checkpoint().empty() ? std::string(", and nothing was saved")
                                           : fmt::format(", its state is in {}", checkpoint())));
    }
    return fail(
        ErrorCode::interrupted,
        fmt::format("interrupted after {}; {}", counted(next_, "iteration"),
                    checkpoint().empty() ? std::string("nothing was saved (use `checkpoint`)")
                                         : fmt::format("go on with `resume` {}", checkpoint())));
  }

  void close() const {
    report_.next_iteration = next_;
    report_.trials = trials_.report();
    report_.state_crc32 = checksum(training_->runner());
  }

 private:
  /// What the present plan's times are of.
  static const Machine& planned_for(const Preparation& start) {
    return start.plan.profile ? start.plan.profile->machine : start.running_on();
  }

  /// Returns how many are done. Plans that are tried take turns at the beginning.
  Result<std::int64_t> run(std::int64_t count,
                           const std::function<void(std::int64_t, Nanos)>& told) {
    std::int64_t done = 0;
    while (done < count && trials_.running() && !observer_.stop_requested()) {
      const TrialBlock block = trials_.block();
      const std::int64_t few = std::min(count - done, block.iterations);
      const RunReport ran = run_block(few, block.observed, told);
      done += ran.iterations;
      // What an epoch's end cuts short says little.
      if (ran.iterations < block.iterations) return done;
      TrialRun trial{{}, training_->measured_times(ran, block.observed)};
      if (block.observed) trial.timings = training_->executor().timings();
      const auto changed = trials_.follow(std::move(trial), total_ - next_ - done);
      if (!changed) return fail(changed.error());
      if (!trials_.running()) {
        if (training_) training_->measure_anew();
        if (trials_.machine()) drift_ = DiskDrift(*trials_.machine());
      }
      if (*changed || !training_) change_plan(done);
    }
    if (done < count) done += run_block(count - done, false, told).iterations;
    return done;
  }

  RunReport run_block(std::int64_t count, bool observed,
                      const std::function<void(std::int64_t, Nanos)>& told) {
    const FileTraffic before = device_->file_traffic();
    drift_.begin(before);
    RunReport ran = observed ? training_->observe(count, observer_.stop(), told)
                             : training_->run(count, observer_.stop(), told);
    if (report_.file) report_.file->count(before, device_->file_traffic(), ran.iterations);
    return ran;
  }

  /// Between two blocks of an epoch of which `done` iterations are. The device stays open where its
  /// arenas are large enough.
  void change_plan(std::int64_t done) {
    if (training_) {
      training_->executor().exit();
      leave_executors();
    }
    report_.totals = totals_of(job_.program(), start_.lowered().plan);
    open_device(std::move(runner_), done);
    training_->executor().enter();
  }

  /// The values are with the runner, where they stay until the device is opened.
  void leave_executors() {
    report_.arena_peak = std::max(report_.arena_peak, training_->executor().arena_peak());
    runner_ = training_->take_runner();
    evaluation_.reset();
    training_.reset();
  }

  void close_device() {
    leave_executors();
    device_.reset();
  }

  /// Or goes on with it where it is open and large enough; nothing may run on it. `done`:
  /// iterations since next_.
  void open_device(std::unique_ptr<nn::TrainingRunner> runner, std::int64_t done = 0) {
    const Plan& plan = start_.running();
    DeviceConfig config = trials_.arenas();
    if (evaluation_runner_) config = joined(config, device_config(evaluation_plan_));
    if (!device_ || !serves(config_, config)) {
      device_.reset();
      device_ = job_.make_device(start_.running_on());
      device_->open(config);
      config_ = std::move(config);
    }
    const OpenDevice device{*device_};
    training_.emplace(job_, plan, std::move(runner), device);
    training_->executor().set_next_iteration(next_ + done - first_);
    if (evaluation_runner_) {
      evaluation_.emplace(evaluation_program_->program, evaluation_plan_, device,
                          *evaluation_runner_);
    }
  }

  [[nodiscard]] const std::string& checkpoint() const {
    return spec_.checkpoint.empty() ? spec_.resume : spec_.checkpoint;
  }

  /// Inside the same budget.
  Result<void> plan_evaluation(Planner& planner) {
    auto program = job_.make_evaluation();
    if (!program) return fail(program.error());
    evaluation_program_ = std::make_unique<nn::TrainingProgram>(std::move(*program));
    FixedWorkload workload(evaluation_program_->program);
    const PlannerOptions stated = planner_options(plan_terms(job_.spec()), spec_.planner);
    PlannerOptions options;
    options.seed = stated.seed;
    options.time_limit = stated.time_limit;
    options.evaluation_limit = stated.evaluation_limit;
    options.stop = observer_.stop();
    auto planned = make_plan(planner, workload, start_.machine, start_.budget, options);
    if (!planned) return fail(planned.error());
    evaluation_plan_ = std::move(planned->lowered.plan);
    if (start_.parallel) {
      evaluation_plan_ = on_first_device(std::move(evaluation_plan_), start_.running());
    }
    return {};
  }

  const Job& job_;
  const TrainingSpec& spec_;
  TrainingReport& report_;
  Preparation& start_;
  TrainingObserver& observer_;
  std::int64_t total_;
  DiskDrift drift_;
  Trials trials_;
  std::int64_t first_ = 0;  ///< of this run
  std::int64_t next_ = 0;
  std::optional<nn::CheckpointFile> resumed_;  ///< until the runner has its values
  bool diverged_ = false;                      ///< said once

  std::unique_ptr<nn::TrainingProgram> evaluation_program_;
  Plan evaluation_plan_;
  std::unique_ptr<nn::EvaluationRunner> evaluation_runner_;
  std::unique_ptr<Device> device_;
  DeviceConfig config_;                         ///< with which it is open
  std::unique_ptr<nn::TrainingRunner> runner_;  ///< while there is no training_
  std::optional<TrainingRun> training_;
  std::optional<Executor> evaluation_;
};

}  // namespace

Result<void> train_epochs(Job& job, const TrainingSpec& spec, const nn::SampleSource* test,
                          Planner& planner, TrainingReport& report, TrainingObserver& observer) {
  Epochs epochs(job, spec, planner, report, observer);
  const std::int64_t first =
      report.start.checkpoint ? report.start.checkpoint->checkpoint().next_iteration : 0;
  if (report.start.checkpoint) {
    if (auto resumed = epochs.resume(std::move(*report.start.checkpoint)); !resumed) return resumed;
    report.start.checkpoint.reset();
  }
  if (auto opened = epochs.open(test, planner); !opened) return opened;
  for (bool first_epoch = true; !epochs.finished(); first_epoch = false) {
    if (!first_epoch) epochs.follow_disk(planner);
    if (!first_epoch && observer.stop_requested()) return epochs.stopped();
    if (auto trained = epochs.train_epoch(); !trained) return trained;
    auto saved = epochs.save();
    // The one before is still there, and there may be room the next time.
    if (!saved && !epochs.finished() && !observer.stop_requested()) {
      observer.notice(Notice::checkpoint_not_saved,
                      fmt::format("{}; training goes on, and saves again after the next epoch",
                                  saved.error().message));
      saved = Result<void>();
    }
    if (saved && observer.stop_requested()) return epochs.stopped();
    if (!observer.stop_requested()) {
      if (auto evaluated = epochs.evaluate(); !evaluated) return evaluated;
      if (saved && observer.stop_requested()) return epochs.stopped();
    }
    // What was learned is said even where it could not be saved.
    observer.epoch(report.epochs.back());
    // What came of it is told all the same.
    if (!saved && (!epochs.finished() || observer.stop_requested())) return saved;
    if (!saved) report.not_saved = saved.error();
  }
  epochs.close();
  report.predicted = predicted_median(job, report.start, first, report.next_iteration - first);
  return {};
}

}  // namespace tidepool
