#include "train/epochs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/counted.h"
#include "train/diverged.h"
#include "train/training_run.h"

namespace tidepool {
namespace {

/// The state between epochs.
class Epochs {
 public:
  Epochs(const Job& job, const TrainingSpec& spec, Planner& planner, TrainingReport& report,
         Observer& observer)
      : job_(job),
        spec_(spec),
        planner_(planner),
        report_(report),
        start_(report.start),
        observer_(observer),
        total_(spec.epochs * job.iterations_per_epoch()) {}

  Result<void> resume(nn::Checkpoint checkpoint) {
    state_ = std::move(checkpoint.tensors);
    next_ = checkpoint.next_iteration;
    if (next_ < total_) return {};
    return fail(ErrorCode::usage, fmt::format("{} has finished {} of {}: nothing is left; "
                                              "ask for more `epochs`",
                                              spec_.resume, next_, counted(total_, "iteration")));
  }

  /// To the end of the epoch, or to where the observer stops it.
  Result<void> train_epoch() {
    const std::int64_t per_epoch = job_.iterations_per_epoch();
    const std::int64_t epoch = next_ / per_epoch;
    const std::int64_t count = (epoch + 1) * per_epoch - next_;
    const auto start = std::chrono::steady_clock::now();
    auto runner = job_.make_runner(total_, next_);
    if (!runner) return fail(runner.error());
    if (!state_.empty()) {
      if (auto restored = restore(state_, **runner); !restored) return restored;
    }
    TrainingRun training(job_, start_.machine, start_.lowered().plan, std::move(*runner));
    training.executor().enter();
    const RunReport run = training.run(count, observer_.stop(), [&](std::int64_t i, Nanos time) {
      observer_.update(static_cast<double>(next_ + i + 1) / static_cast<double>(total_),
                       fmt::format("epoch {}/{}: iteration {}/{}, {}", epoch + 1, spec_.epochs,
                                   per_epoch - count + i + 1, per_epoch, format_time(time)));
      observer_.iteration({next_ + i + 1, total_, time});
    });
    training.executor().exit();
    const auto& losses = training.runner().losses();
    if (!diverged_) diverged_ = warn_if_diverged(losses, next_, observer_);
    next_ += run.iterations;
    if (training.measured() > 0) {
      report_.measured = training.median();
      report_.measured_iterations = training.measured();
    }
    report_.arena_peak = std::max(report_.arena_peak, training.executor().arena_peak());
    state_ = state_of(training.runner());
    EpochReport& r = report_.epochs.emplace_back();
    r.epoch = epoch + 1;
    r.epochs = spec_.epochs;
    r.iterations = run.iterations;
    r.all_iterations = per_epoch;
    for (const float loss : losses) r.loss += static_cast<double>(loss);
    r.loss /= std::max<double>(1, static_cast<double>(run.iterations));
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return {};
  }

  [[nodiscard]] Result<void> save() const {
    if (checkpoint().empty()) return {};
    return save_checkpoint(job_, chosen_algorithms(job_.program(), start_.lowered().plan), next_,
                           state_, checkpoint());
  }

  /// On the test split, inside the same budget; the training's device is closed by now.
  Result<void> evaluate(const nn::Dataset& data) {
    const auto program = job_.make_evaluation();
    if (!program) return fail(program.error());
    FixedWorkload workload(program->program);
    PlannerOptions options;
    options.stop = observer_.stop();
    auto planned = make_plan(planner_, workload, start_.machine, start_.budget, options);
    if (!planned) return fail(planned.error());
    auto runner = nn::EvaluationRunner::create(*program, job_.kernels(), data);
    if (!runner) return fail(runner.error());
    if (auto restored = restore(state_, **runner); !restored) return restored;
    const std::unique_ptr<Device> device = job_.make_device(start_.machine);
    Executor executor(program->program, planned->lowered.plan, *device, **runner);
    executor.enter();
    const RunReport run = executor.run((*runner)->iterations(), observer_.stop());
    if (!run.cancelled) report_.epochs.back().test = (*runner)->result();
    report_.arena_peak = std::max(report_.arena_peak, executor.arena_peak());
    return {};
  }

  [[nodiscard]] bool finished() const { return next_ >= total_; }

  [[nodiscard]] tl::unexpected<Error> stopped() const {
    return fail(
        ErrorCode::interrupted,
        fmt::format("interrupted after {}; {}", counted(next_, "iteration"),
                    checkpoint().empty() ? std::string("nothing was saved (use `checkpoint`)")
                                         : fmt::format("go on with `resume` {}", checkpoint())));
  }

  void close() const {
    report_.next_iteration = next_;
    report_.state_crc32 = checksum(state_);
  }

 private:
  [[nodiscard]] const std::string& checkpoint() const {
    return spec_.checkpoint.empty() ? spec_.resume : spec_.checkpoint;
  }

  const Job& job_;
  const TrainingSpec& spec_;
  Planner& planner_;
  TrainingReport& report_;
  const Preparation& start_;
  Observer& observer_;
  std::int64_t total_;
  std::int64_t next_ = 0;
  TrainingState state_;
  bool diverged_ = false;  ///< said once
};

}  // namespace

Result<void> train_epochs(const Job& job, const TrainingSpec& spec, const nn::Dataset* test,
                          Planner& planner, TrainingReport& report, Observer& observer) {
  Epochs epochs(job, spec, planner, report, observer);
  if (report.start.checkpoint) {
    if (auto resumed = epochs.resume(std::move(*report.start.checkpoint)); !resumed) return resumed;
    report.start.checkpoint.reset();
  }
  while (!epochs.finished()) {
    if (auto trained = epochs.train_epoch(); !trained) return trained;
    const auto saved = epochs.save();
    if (saved && observer.stop_requested()) return epochs.stopped();
    if (test != nullptr && !observer.stop_requested()) {
      if (auto evaluated = epochs.evaluate(*test); !evaluated) return evaluated;
      if (saved && observer.stop_requested()) return epochs.stopped();
    }
    // What was learned is said even where it could not be saved.
    observer.epoch(report.epochs.back());
    if (!saved) return saved;
  }
  epochs.close();
  return {};
}

}  // namespace tidepool
