#include "measure/link_speed.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

#include "base/json.h"
#include "base/quantity.h"
#include "cost/machine_json.h"
#include "ir/load_profile.h"
#include "job/job_spec.h"
#include "measure/disk_speed.h"
#include "measure/kept_measurement.h"
#include "measure/measure.h"
#include "measure/profiling_task.h"
#include "nn/models/model.h"
#include "planning/planning_spec.h"

namespace tidepool {
namespace {

/// The published iteration, that of a GTX 1080 Ti: SmartPool/AutoSwap, arXiv:1903.06631.
constexpr std::string_view kPublishedModel = "vgg16";
constexpr std::int64_t kPublishedBatch = 100;
constexpr double kPublishedBandwidth = 13.2e9;
constexpr double kPublishedSeconds = 81.57e-3;

/// What is measured for it: the first of the list that the budget allows. Each is the same work in
/// every budget, and they answer alike, because each kind of op is scaled by what it does. Where
/// ops are so short that calling them is much of their time, that is taken out by a second
/// measurement with fewer samples. docs/USAGE.md has what the four gave on one machine.
struct Reference {
  std::string_view model;
  std::int64_t batch = 0;
  int iterations = kProfileIterations;
  std::int64_t without = 0;  ///< the batch whose time is taken off; 0: none
};
constexpr Reference kReferences[] = {{kPublishedModel, 25},
                                     {"tiny-vgg", 100, 15, 16},
                                     {"tiny-vgg", 16, 25, 4},
                                     {"tiny-vgg", 4, 25, 1}};

/// Warnings about the job itself were given when it was made.
class ProgressOnly : public Observer {
 public:
  explicit ProgressOnly(Observer& observer) : observer_(observer) {}
  void update(double fraction, std::string_view what) override { observer_.update(fraction, what); }
  [[nodiscard]] bool stop_requested() const override { return observer_.stop_requested(); }
  void nothing_to_lose(bool begins) override { observer_.nothing_to_lose(begins); }

 private:
  Observer& observer_;
};

Machine emulated(const Job& job, double bytes_per_second) {
  constexpr Nanos kLatency{50'000};  // waking a copy thread
  Machine machine;
  machine.name = job.kind().name;
  machine.description = job.kind().description;
  machine.set_alignment(job.alignment());
  machine.to_host() = {bytes_per_second, kLatency};
  machine.to_device() = {bytes_per_second, kLatency};
  return machine;
}

/// What the ops of one kind do in an iteration, and how long they take.
struct Share {
  double amount = 0;  ///< flops of convolutions and linear layers; bytes moved by others
  double time = 0;
};
using Work = std::map<std::string, Share>;  ///< by kind

Work work_of(const Program& program) {
  Work work;
  const auto algorithms = least_workspace_algorithms(program);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (op.place != OpPlace::device) continue;
    const bool arithmetic = op.kind.starts_with("conv") || op.kind.starts_with("linear");
    Share& share = work[op.kind];
    share.amount += arithmetic ? op.flops : static_cast<double>(op.traffic);
    const auto algorithm = static_cast<std::size_t>(algorithms[i]);
    share.time += static_cast<double>(op.algorithms[algorithm].time.count());
  }
  return work;
}

Result<Work> published_work(const Job& job) {
  const auto graph = nn::build_model(kPublishedModel);
  if (!graph) return fail(graph.error());
  nn::TrainingOptions options;
  options.batch = kPublishedBatch;
  const auto training = nn::build_training_program(*graph, options, job.kernels());
  if (!training) return fail(training.error());
  return work_of(training->program);
}

/// The published iteration: each kind of op by what it does. `less` has fewer samples of the same
/// network; updates take as long with any.
Nanos scaled(const Work& measured, const Work& less, const Work& published) {
  double sum = 0;
  for (const auto& [kind, whole] : published) {
    const auto found = measured.find(kind);
    if (found == measured.end()) continue;
    Share share = found->second;
    const auto fewer = less.find(kind);
    if (fewer != less.end() && share.amount > 1.5 * fewer->second.amount &&
        share.time > fewer->second.time) {
      share.amount -= fewer->second.amount;
      share.time -= fewer->second.time;
    }
    sum += share.amount > 0 ? share.time * whole.amount / share.amount : share.time;
  }
  return Nanos{std::max<std::int64_t>(1, std::llround(sum))};
}

/// `infeasible` where the budget is too small for it.
Result<Work> measure_network(const Job& job, const Reference& reference, const Budget& budget,
                             Observer& observer) {
  constexpr double kAnySpeed = 10e9;  // copies are not part of the time
  JobSpec spec;
  spec.model = reference.model;
  spec.batch = reference.batch;
  spec.device = job.spec().device;
  spec.device.threads = job.threads();
  spec.data.name = "synthetic";
  auto measured = Job::make(spec, observer);
  if (!measured) return fail(measured.error());
  const SmallestBudget least = smallest_budget(measured->program(), job.alignment());
  if (least.bytes > budget.device) {
    return fail(Error{ErrorCode::infeasible,
                      fmt::format("{} at batch {} needs {} B ({})", reference.model,
                                  reference.batch, least.bytes, format_bytes_up(least.bytes)),
                      least.bytes});
  }
  const ProfilingTask task{.iterations = reference.iterations, .budget = budget};
  const Machine machine = emulated(*measured, kAnySpeed);
  const auto done =
      measure(*measured, machine, task, planned_measurement(*measured, machine, task), observer);
  if (!done) return fail(done.error());
  return work_of(measured->program());
}

Result<Nanos> measure_reference(const Job& job, const Reference& reference, const Budget& budget,
                                Observer& observer) {
  const auto measured = measure_network(job, reference, budget, observer);
  if (!measured) return fail(measured.error());
  Work less;
  if (reference.without > 0) {
    Reference fewer = reference;
    fewer.batch = reference.without;
    const auto without = measure_network(job, fewer, budget, observer);
    if (!without) return fail(without.error());
    less = *without;
  }
  const auto published = published_work(job);
  if (!published) return fail(published.error());
  return scaled(*measured, less, *published);
}

/// By the first reference that the budget allows.
Result<ReferenceTime> measure_reference(const Job& job, const Budget& budget, Observer& all) {
  ProgressOnly observer(all);
  Error error;
  for (const Reference& reference : kReferences) {
    const auto time = measure_reference(job, reference, budget, observer);
    if (time) {
      return ReferenceTime{*time, fmt::format("{} at batch {}", reference.model, reference.batch)};
    }
    if (time.error().code != ErrorCode::infeasible) return fail(time.error());
    error = time.error();
  }
  error.message =
      "the speed of the emulated link follows from a small network, which has not been measured "
      "on this machine and does not fit the budget: " +
      error.message + "; give the `link`, or a larger budget once";
  return fail(std::move(error));
}

}  // namespace

Result<ReferenceTime> reference_time(const Job& job, const Budget& budget, const CacheSpec& cache,
                                     Observer& observer) {
  const auto file = kept_file("reference", job.fingerprint(), cache);
  if (!cache.reprofile) {
    auto kept = known(file, [](const JsonCursor& json) {
      return ReferenceTime{Nanos{json["iteration_ns"].integer(1)}, json["measured"].text()};
    });
    if (kept) return std::move(*kept);
  }
  auto measured = measure_reference(job, budget, observer);
  if (!measured) return measured;
  remember(file, job.fingerprint(),
           {{"iteration_ns", measured->iteration.count()}, {"measured", measured->measured}});
  return measured;
}

namespace {

Machine measured_machine(const Job& job, const Budget& budget, const CacheSpec& cache) {
  const std::int32_t devices = job.spec().devices;
  const auto file = kept_file(devices == 1 ? "links" : fmt::format("links-of-{}", devices),
                              job.fingerprint(), cache);
  if (!cache.reprofile) {
    if (auto kept =
            known(file, [](const JsonCursor& j) { return machine_from_json(j["machine"]); })) {
      return std::move(*kept);
    }
  }
  const Bytes host = budget.host > 0 ? budget.host : std::numeric_limits<Bytes>::max();
  Machine machine = job.kind().calibrate(devices, budget.device, host);
  remember(file, job.fingerprint(), {{"machine", to_json(machine)}});
  return machine;
}

/// The device's arena is memory like the host's: nothing is emulated.
Result<Machine> spilling_machine(const Job& job, const Budget& budget, const CacheSpec& cache,
                                 Observer& observer) {
  const SpillOptions& spill = job.spec().device.spill;
  const auto speed = disk_speed(job.kind(), spill, budget.device, cache, observer);
  if (!speed) return fail(speed.error());
  const SpillLink link = spill_link(*speed, spill);
  return with_spill(emulated(job, link.memory.bytes_per_second), link);
}

Result<Machine> machine_without_tier(const Job& job, const Budget& budget, const CacheSpec& cache,
                                     Observer& observer) {
  if (!job.kind().emulates_links()) return measured_machine(job, budget, cache);
  if (job.spec().device.spills()) return spilling_machine(job, budget, cache, observer);
  if (job.spec().device.link > 0) return emulated(job, static_cast<double>(job.spec().device.link));
  const auto reference = reference_time(job, budget, cache, observer);
  if (!reference) return fail(reference.error());
  const double speed = kPublishedBandwidth * kPublishedSeconds / to_seconds(reference->iteration);
  observer.notice(
      Notice::link_from_reference,
      fmt::format("emulated link {:.0f} MB/s each way, by {}", speed * 1e-6, reference->measured));
  return emulated(job, speed);
}

}  // namespace

Result<Machine> device_machine(const Job& job, const Budget& budget, const CacheSpec& cache,
                               Observer& observer) {
  auto machine = machine_without_tier(job, budget, cache, observer);
  if (!machine || !job.spec().device.has_file_tier()) return machine;
  const SpillOptions& tier = job.spec().device.file_tier;
  const auto speed = disk_speed(job.kind(), tier, budget.host, cache, observer);
  if (!speed) return fail(speed.error());
  return with_file_tier(*machine, file_tier_link(*speed, tier));
}

}  // namespace tidepool
