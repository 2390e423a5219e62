#include "tidepool/train.h"

#include <fmt/format.h>

#include "api/thrown.h"
#include "train/train.h"

namespace tidepool::api {
namespace {

/// Tells a caller's functions; asks its token.
class CallersObserver : public TrainingObserver {
 public:
  explicit CallersObserver(const tp::TrainObserver& caller) : caller_(caller) {}

  void iteration(const IterationReport& report) override {
    if (caller_.iteration) caller_.iteration(report.number, report.total, report.time);
  }
  void notice(Notice /*kind*/, const std::string& text) override {
    if (caller_.notice) caller_.notice(text);
  }
  [[nodiscard]] bool stop_requested() const override { return caller_.stop.stop_requested(); }

 private:
  const tp::TrainObserver& caller_;
};

nn::Optimizer optimizer_of(const std::string& name) {
  for (const nn::Optimizer optimizer : {nn::Optimizer::sgd, nn::Optimizer::adamw}) {
    if (to_text(optimizer) == name) return optimizer;
  }
  throw_usage(fmt::format("unknown `optimizer` '{}'; there are: sgd, adamw", name));
}

TrainingSpec training_spec(const tp::TrainSpec& spec) {
  const auto not_below = [](std::int64_t value, std::int64_t least, const char* field) {
    if (value < least) throw_usage(fmt::format("`{}` is below {}", field, least));
  };
  not_below(spec.batch, 1, "batch");
  not_below(spec.sub_batch, 0, "sub_batch");
  not_below(spec.threads, 0, "threads");
  not_below(spec.host_budget, 0, "host_budget");
  not_below(spec.time_limit.count(), 0, "time_limit");
  not_below(spec.evaluation_limit, 0, "evaluation_limit");
  not_below(spec.epochs, 0, "epochs");
  not_below(spec.iterations, 1, "iterations");
  if (spec.sub_batch > spec.batch) throw_usage("`sub_batch` is larger than `batch`");
  if (!(spec.learning_rate >= 0)) throw_usage("`learning_rate` is below 0");
  TrainingSpec own;
  own.job.model = spec.model;
  own.job.batch = spec.batch;
  own.job.sub_batch = spec.sub_batch;
  own.job.data.name = spec.data;
  own.job.data.folder = spec.data_folder;
  own.job.device.name = spec.device;
  own.job.device.threads = spec.threads;
  own.job.seed = spec.seed;
  own.job.learning_rate = constant_rate(spec.learning_rate);
  own.job.optimizer = optimizer_of(spec.optimizer);
  if (!spec.budget.empty()) own.budget.device = value_of(parse_size_or_percent(spec.budget));
  own.budget.host = spec.host_budget;
  own.planner.name = spec.planner;
  if (spec.time_limit > Nanos{0}) own.planner.time_limit = spec.time_limit;
  own.planner.evaluations = spec.evaluation_limit;
  own.cache.off = !spec.cache;
  own.iterations = spec.iterations;
  own.epochs = spec.epochs;
  own.comparison = spec.compare_bits ? Comparison::bits : Comparison::none;
  own.checkpoint = spec.checkpoint;
  own.resume = spec.resume;
  own.overwrite = spec.overwrite;
  return own;
}

tp::TrainReport report_of(const TrainingReport& own) {
  tp::TrainReport report;
  report.device = own.device;
  report.threads = own.threads;
  report.sub_batch = own.sub_batch;
  report.rounds = own.rounds;
  report.budget = limited(own.start.budget) ? own.start.budget.device : 0;
  report.footprint = own.start.running().device_bytes();
  report.arena_peak = own.arena_peak;
  report.host_bytes = own.start.running().host_bytes();
  report.planner = own.start.running().planner;
  report.measured = own.measured.median;
  report.predicted = own.predicted;
  report.losses = own.losses;
  for (const EpochReport& epoch : own.epochs) {
    tp::Epoch one{epoch.epoch, epoch.loss, std::nullopt, epoch.seconds};
    if (epoch.test) one.accuracy = epoch.test->accuracy;
    report.epochs.push_back(one);
  }
  if (own.baseline) report.identical = own.baseline->identical;
  report.state_crc32 = own.state_crc32;
  return report;
}

}  // namespace
}  // namespace tidepool::api

namespace tp {

TrainReport train(const TrainSpec& spec, const TrainObserver& observer) {
  namespace api = tidepool::api;
  return api::bordered([&] {
    api::CallersObserver own(observer);
    const auto report = tidepool::run_training(api::training_spec(spec), own);
    if (!report) api::throw_error(report.error());
    if (report->not_saved) api::throw_error(*report->not_saved);
    return api::report_of(*report);
  });
}

}  // namespace tp
