// TrainingRun: a plan running on a device, its own or one that is shared, with its own runner.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/spread.h"
#include "job/job.h"
#include "runtime/executor.h"

namespace tidepool {

/// Whether what was opened for one plan serves another.
inline bool serves(const DeviceConfig& opened, const DeviceConfig& wanted) {
  const auto same_stream = [](const StreamConfig& a, const StreamConfig& b) {
    return a.kind == b.kind && a.device == b.device;
  };
  const auto enough = [](const DeviceConfig::ArenaSize& a, const DeviceConfig::ArenaSize& b) {
    return a.kind == b.kind && a.bytes >= b.bytes;
  };
  return std::ranges::equal(opened.streams, wanted.streams, same_stream) &&
         std::ranges::equal(opened.arenas, wanted.arenas, enough);
}

class TrainingRun {
 public:
  /// Opens the device: from here on its arenas are taken. `per_graph`: iterations captured in one
  /// graph; 0: none.
  TrainingRun(const Job& job, const Machine& machine, const Plan& plan,
              std::unique_ptr<nn::TrainingRunner> runner, std::int64_t per_graph = 0)
      : job_(job),
        per_graph_(per_graph),
        plan_(plan),
        runner_(std::move(runner)),
        config_(device_config(plan_)),
        device_(job.make_device(machine)) {
    executor_.emplace(job.whole().program, plan_, *device_, *runner_);
  }

  /// The same for several plans that take turns, of which this is the first: the arenas are large
  /// enough for all of them.
  TrainingRun(const Job& job, const Machine& machine, const Plan& plan,
              std::unique_ptr<nn::TrainingRunner> runner, DeviceConfig arenas)
      : job_(job),
        plan_(plan),
        runner_(std::move(runner)),
        config_(std::move(arenas)),
        device_(job.make_device(machine)) {
    device_->open(config_);
    executor_.emplace(job.whole().program, plan_, OpenDevice{*device_}, *runner_);
  }

  /// On a device that others use in turn.
  TrainingRun(const Job& job, const Plan& plan, std::unique_ptr<nn::TrainingRunner> runner,
              OpenDevice device)
      : job_(job), plan_(plan), runner_(std::move(runner)) {
    executor_.emplace(job.whole().program, plan_, device, *runner_);
  }

  Executor& executor() { return *executor_; }
  /// Of its own device's file.
  [[nodiscard]] FileTraffic traffic() { return device_ ? device_->file_traffic() : FileTraffic{}; }
  [[nodiscard]] const nn::TrainingRunner& runner() const { return *runner_; }
  /// Nothing can run afterwards.
  std::unique_ptr<nn::TrainingRunner> take_runner() { return std::move(runner_); }

  /// Runs a block of iterations. The first of a block starts from an idle device, the first of all
  /// also from cold caches: they are not measured.
  RunReport run(std::int64_t iterations, const Stop& stop,
                const std::function<void(std::int64_t, Nanos)>& tell) {
    RunReport report = per_graph_ > 0 ? executor_->run_graphs(iterations, per_graph_, stop, tell)
                                      : executor_->run(iterations, stop, tell);
    keep_times(report, false);
    return report;
  }

  /// The same, never in graphs, and the executor keeps the times of its instructions. Graphs take
  /// other times: where there are some these iterations are not measured.
  RunReport observe(std::int64_t iterations, const Stop& stop,
                    const std::function<void(std::int64_t, Nanos)>& tell) {
    executor_->record_timings();
    RunReport report = executor_->run(iterations, stop, tell);
    executor_->stop_timings();
    keep_times(report, true);
    return report;
  }

  /// Between blocks: the values are with the runner, and nothing is taken of the device's memory
  /// until the run goes on.
  void close_device() {
    if (is_closed()) return;
    leave_device();
    device_.reset();
  }
  [[nodiscard]] bool is_closed() const { return !executor_; }

  /// Between blocks: from the next one on another plan runs, with the values. Where `arenas`, which
  /// are large enough for it, are not open, the device is closed and another one opened with them.
  /// What was measured until now does not count.
  void go_on_with(const Plan& plan, const Machine& machine, DeviceConfig arenas) {
    if (!is_closed()) leave_device();
    plan_ = plan;
    measure_anew();
    go_on(machine, std::move(arenas));
  }
  /// As before it was closed.
  void go_on(const Machine& machine, DeviceConfig config) {
    if (!device_ || !serves(config_, config)) {
      device_.reset();
      device_ = job_.make_device(machine);
      device_->open(config);
      config_ = std::move(config);
    }
    executor_.emplace(job_.whole().program, plan_, OpenDevice{*device_}, *runner_);
    executor_->set_next_iteration(next_iteration_);
    executor_->enter();
  }

  /// Of a block, those that count.
  [[nodiscard]] std::vector<Nanos> measured_times(const RunReport& report, bool observed) const {
    if (observed && per_graph_ > 0) return {};
    const auto first =
        std::min<std::size_t>(static_cast<std::size_t>(std::max<std::int64_t>(per_graph_, 1)),
                              report.iteration_times.size());
    return {report.iteration_times.begin() + static_cast<std::ptrdiff_t>(first),
            report.iteration_times.end()};
  }

  /// What was measured until now does not count.
  void measure_anew() { times_.clear(); }

  /// Of every plan until now.
  [[nodiscard]] Bytes arena_peak() const { return std::max(arena_peak_, executor_->arena_peak()); }
  [[nodiscard]] std::size_t measured() const { return times_.size(); }
  /// Says what the measured iterations took.
  [[nodiscard]] Spread spread() const { return spread_of(times_); }

 private:
  void leave_device() {
    next_iteration_ = executor_->next_iteration();
    executor_->exit();
    arena_peak_ = arena_peak();
    executor_.reset();
  }

  void keep_times(const RunReport& report, bool observed) {
    std::ranges::copy(measured_times(report, observed), std::back_inserter(times_));
  }

  const Job& job_;
  std::int64_t per_graph_ = 0;
  Plan plan_;
  std::unique_ptr<nn::TrainingRunner> runner_;
  DeviceConfig config_;             ///< of its own device
  std::unique_ptr<Device> device_;  ///< null: shared, or closed
  std::optional<Executor> executor_;
  Bytes arena_peak_ = 0;
  std::int64_t next_iteration_ = 0;  ///< while no executor knows it
  std::vector<Nanos> times_;
};

}  // namespace tidepool
