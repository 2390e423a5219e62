#include "train/iterations.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/median.h"
#include "planners/none.h"
#include "sim/simulate.h"
#include "train/diverged.h"
#include "train/predicted_run.h"
#include "train/training_run.h"
#include "train/training_spec.h"

namespace tidepool {
namespace {

/// Blocks of two trainings alternate, so that noise of the machine hits both.
constexpr std::int64_t kBlock = 4;

/// What an iteration takes longer by simulation when nothing may be in flight from one group of
/// `per_graph` iterations to the next.
Nanos closing_cost(const Program& program, const Plan& plan, const Machine& machine,
                   Nanos iteration_time, std::int64_t per_graph) {
  const Simulation group = simulate(program, plan, machine, static_cast<int>(per_graph));
  Nanos end{0};
  for (const auto& iteration : group.iterations) {
    for (const Span& span : iteration) end = std::max(end, span.end);
  }
  return end / per_graph - iteration_time;
}

Nanos closing_cost(const Job& job, const Preparation& start, std::int64_t per_graph) {
  if (start.parallel) {
    const ParallelPlan& all = *start.parallel;
    return closing_cost(all.program, all.plan, all.machine, all.iteration_time, per_graph);
  }
  const Lowered& lowered = start.lowered();
  return closing_cost(job.program(), lowered.plan, start.machine, lowered.iteration_time,
                      per_graph);
}

/// The training inside the budget, and the one beside it.
class Iterations {
 public:
  Iterations(Job& job, const TrainingSpec& spec, Planner& planner, TrainingReport& report,
             TrainingObserver& observer)
      : job_(job),
        spec_(spec),
        report_(report),
        start_(report.start),
        observer_(observer),
        drift_(start_.plan.profile ? start_.plan.profile->machine : start_.running_on()),
        trials_(job, spec, planner, report.start, observer,
                {job, report.memory ? &report.memory->process : nullptr,
                 [this] { inside_->close_device(); }}) {}

  Result<void> open() {
    auto runner = job_.make_runner();
    if (!runner) return fail(runner.error());
    inside_.emplace(job_, start_.running_on(), start_.running(), std::move(*runner), spec_.graph);
    inside_->executor().enter();
    if (spec_.comparison == Comparison::none) return {};
    const auto plan = plan_with(chosen_algorithms(job_.program(), start_.lowered().plan),
                                *make_none(), job_.program(), start_.machine, no_limit(), {});
    if (!plan) return fail(plan.error());
    runner = job_.make_runner();
    if (!runner) return fail(runner.error());
    Plan running = plan->lowered.plan;
    if (start_.parallel) {
      auto parallel = parallel_plan(job_, running, start_.parallel->machine, no_limit());
      if (!parallel) return fail(parallel.error());
      running = std::move(parallel->plan);
    }
    without_.emplace(job_, start_.running_on(), running, std::move(*runner));
    without_->executor().enter();
    return {};
  }

  /// All iterations of both; stops early when the observer says so. Returns how many are done.
  Result<std::int64_t> run() {
    const std::int64_t total = spec_.iterations;
    // Alone there is nothing to alternate with: one block.
    const std::int64_t block = !without_ ? total : spec_.graph > 0 ? 2 * spec_.graph : kBlock;
    std::int64_t done = 0;
    while (done < total && !observer_.stop_requested()) {
      const bool tries = trials_.running();
      const TrialBlock trial = tries ? trials_.block() : TrialBlock{block, false};
      const std::int64_t count = std::min(trial.iterations, total - done);
      const std::int64_t before = done;
      const auto told = [&](std::int64_t i, Nanos time) {
        tell(i, time, before, "inside the budget");
        observer_.iteration({i + 1, total, time});
        watch_disk(before + i + 1);
      };
      const FileTraffic before_block = inside_->traffic();
      drift_.begin(before_block);
      const RunReport ran = trial.observed ? inside_->observe(count, observer_.stop(), told)
                                           : inside_->run(count, observer_.stop(), told);
      done += ran.iterations;
      if (report_.file) report_.file->count(before_block, inside_->traffic(), ran.iterations);
      if (tries && ran.iterations == count) {
        if (auto went = follow(ran, trial.observed, total - done); !went) return fail(went.error());
      }
      if (!without_ || observer_.stop_requested()) continue;
      without_->run(count, observer_.stop(),
                    [&](std::int64_t i, Nanos time) { tell(i, time, done, "without a budget"); });
    }
    return done;
  }

  void close() {
    TrainingReport& report = report_;
    inside_->executor().exit();
    report.arena_peak = inside_->arena_peak();
    report.trials = trials_.report();
    report.measured = inside_->spread();
    report.measured_iterations = inside_->measured();
    report.losses = inside_->runner().losses();
    report.state_crc32 = checksum(inside_->runner());
    if (!without_) return;
    without_->executor().exit();
    Baseline baseline;
    baseline.time = without_->spread();
    if (spec_.comparison == Comparison::bits) {
      baseline.identical = identical(job_.whole().program, without_->runner(), inside_->runner());
    }
    report.measured_iterations = std::min(report.measured_iterations, without_->measured());
    report.baseline = baseline;
  }

 private:
  /// After a block of a trial. `left`: iterations that are still to run.
  Result<void> follow(const RunReport& ran, bool observed, std::int64_t left) {
    TrialRun run{{}, inside_->measured_times(ran, observed)};
    if (observed) run.timings = inside_->executor().timings();
    const auto changed = trials_.follow(std::move(run), left);
    if (!changed) return fail(changed.error());
    if (!trials_.running()) {
      inside_->measure_anew();
      if (trials_.machine()) drift_ = DiskDrift(*trials_.machine());
    }
    if (*changed) {
      report_.totals = totals_of(job_.program(), start_.lowered().plan);
      inside_->go_on_with(start_.running(), start_.running_on(), trials_.arenas());
    } else if (inside_->is_closed()) {
      inside_->go_on(start_.running_on(), trials_.arenas());
    }
    return {};
  }

  void watch_disk(std::int64_t done) {
    if (!report_.file) return;
    drift_.iteration(inside_->traffic());
    report_.file->watch(drift_, done, start_.iteration_time(), observer_);
  }

  /// `beside`: iterations the other training has done.
  void tell(std::int64_t i, Nanos time, std::int64_t beside, const char* which) {
    const std::int64_t total = spec_.iterations;
    const std::int64_t done = i + 1 + (without_ ? beside : 0);
    observer_.update(
        static_cast<double>(done) / static_cast<double>(without_ ? 2 * total : total),
        fmt::format("{}: iteration {}/{}, {}", which, i + 1, total, format_time(time)));
  }

  const Job& job_;
  const TrainingSpec& spec_;
  TrainingReport& report_;
  const Preparation& start_;
  TrainingObserver& observer_;
  std::optional<TrainingRun> inside_;
  DiskDrift drift_;
  Trials trials_;
  std::optional<TrainingRun> without_;
};

}  // namespace

Result<void> train_iterations(Job& job, const TrainingSpec& spec, Planner& planner,
                              TrainingReport& report, TrainingObserver& observer) {
  Iterations iterations(job, spec, planner, report, observer);
  if (auto opened = iterations.open(); !opened) return opened;
  const auto done = iterations.run();
  if (!done) return fail(done.error());
  report.next_iteration = *done;
  report.predicted = predicted_median(job, report.start, 0, report.next_iteration);
  if (observer.stop_requested()) {
    return fail(ErrorCode::interrupted, fmt::format("interrupted after {}; nothing was saved",
                                                    counted(report.next_iteration, "iteration")));
  }
  iterations.close();
  if (spec.graph > 0) {
    report.graph = GraphReport{spec.graph, closing_cost(job, report.start, spec.graph)};
  }
  warn_if_diverged(report.losses, 0, observer);
  return {};
}

}  // namespace tidepool
