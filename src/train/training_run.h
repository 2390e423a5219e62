// TrainingRun: a plan running on a device, its own or one that is shared, with its own runner.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/median.h"
#include "runtime/executor.h"
#include "train/job.h"

namespace tidepool {

class TrainingRun {
 public:
  /// Opens the device: from here on its arenas are taken. `per_graph`: iterations captured in one
  /// graph; 0: none.
  TrainingRun(const Job& job, const Machine& machine, const Plan& plan,
              std::unique_ptr<nn::TrainingRunner> runner, std::int64_t per_graph = 0)
      : per_graph_(per_graph),
        plan_(plan),
        runner_(std::move(runner)),
        device_(job.make_device(machine)),
        executor_(job.whole().program, plan_, *device_, *runner_) {}

  /// On a device that others use in turn.
  TrainingRun(const Job& job, const Plan& plan, std::unique_ptr<nn::TrainingRunner> runner,
              OpenDevice device)
      : plan_(plan),
        runner_(std::move(runner)),
        executor_(job.whole().program, plan_, device, *runner_) {}

  Executor& executor() { return executor_; }
  /// Of its own device's file.
  [[nodiscard]] FileTraffic traffic() { return device_ ? device_->file_traffic() : FileTraffic{}; }
  [[nodiscard]] const nn::TrainingRunner& runner() const { return *runner_; }
  /// Nothing can run afterwards.
  std::unique_ptr<nn::TrainingRunner> take_runner() { return std::move(runner_); }

  /// Runs a block of iterations. The first of a block starts from an idle device, the first of all
  /// also from cold caches: they are not measured.
  RunReport run(std::int64_t iterations, const Stop& stop,
                const std::function<void(std::int64_t, Nanos)>& tell) {
    RunReport report = per_graph_ > 0 ? executor_.run_graphs(iterations, per_graph_, stop, tell)
                                      : executor_.run(iterations, stop, tell);
    const auto first = static_cast<std::size_t>(std::max<std::int64_t>(per_graph_, 1));
    for (std::size_t i = first; i < report.iteration_times.size(); ++i) {
      times_.push_back(report.iteration_times[i]);
    }
    return report;
  }

  [[nodiscard]] std::size_t measured() const { return times_.size(); }
  /// Of the measured iterations; 0 where there are none.
  [[nodiscard]] Nanos median() const {
    return times_.empty() ? Nanos{0} : tidepool::median(times_);
  }

 private:
  std::int64_t per_graph_ = 0;
  Plan plan_;
  std::unique_ptr<nn::TrainingRunner> runner_;
  std::unique_ptr<Device> device_;  ///< null: shared
  Executor executor_;
  std::vector<Nanos> times_;
};

}  // namespace tidepool
