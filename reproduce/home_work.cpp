#include "home_work.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "ir/load_profile.h"
#include "lower/overhead.h"
#include "nn/models/model.h"
#include "nn/training_program.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "report/timeline.h"
#include "trace/allocators/caching.h"

namespace tidepool::reproduce {

HomeCalibration calibrate_home(const Machine& machine) {
  HomeCalibration calibration;
  std::map<std::string, double> modelled_over_published;
  double sum = 0;
  for (const PublishedHome& p : kPublishedHome) {
    const auto profile =
        home_profile(p.model, static_cast<std::int64_t>(p.pytorch.max_batch), machine, 1);
    if (!profile) continue;
    const Nanos modelled =
        compute_time(profile->program, least_workspace_algorithms(profile->program));
    const double published_ms = 1e3 * p.pytorch.max_batch / p.pytorch.samples_per_s;
    const double ratio = to_ms(modelled) / published_ms;
    modelled_over_published[std::string(p.model)] = ratio;
    sum -= std::log(ratio);
  }
  if (modelled_over_published.empty()) return calibration;
  calibration.time_scale = std::exp(sum / static_cast<double>(modelled_over_published.size()));
  for (const auto& [model, ratio] : modelled_over_published) {
    calibration.residuals[model] = ratio * calibration.time_scale - 1;
  }
  return calibration;
}

Result<Profile> home_profile(std::string_view model, std::int64_t batch, const Machine& machine,
                             double time_scale) {
  const auto graph = nn::build_model(model);
  if (!graph) return fail(graph.error());
  nn::TrainingOptions options;
  options.batch = batch;
  options.storage = nn::Storage::relu_in_place;
  auto training = nn::build_training_program(*graph, options, nn::reference_kernels());
  if (!training) return fail(training.error());
  Program& program = training->program;
  apply_cost_model(machine, program);
  for (Op& op : program.ops) {
    for (Algorithm& a : op.algorithms) {
      a.time = Nanos{std::llround(time_scale * static_cast<double>(a.time.count()))};
    }
  }
  return Profile{"preset " + machine.name, std::move(program), machine};
}

FitTrial try_pytorch(const Profile& profile, Bytes budget) {
  const Program& program = profile.program;
  const auto algorithms = least_workspace_algorithms(program);
  const ProgramRecording recorded = record_program(program, algorithms, 2);
  CachingAllocator allocator(budget);
  FitTrial trial;
  trial.batch = program.batch;
  trial.footprint = replay(allocator, allocation_requests(recorded.recording));
  trial.fits = trial.footprint <= budget;
  if (!trial.fits) trial.why_not.message = "the caching allocator reserves more";
  trial.iteration = trial.unlimited = kept_time(program, profile.machine, algorithms);
  return trial;
}

Result<FitTrial> try_system(const HomeSystem& system, const Profile& profile, const Budget& budget,
                            const PlannerOptions& options) {
  if (system.planner.empty()) return try_pytorch(profile, budget.device);
  return try_plan(profile, budget, std::string(system.planner), options);
}

Result<void> add_common_batches(std::span<const HomeSystem> systems, const TrySystem& try_batch,
                                Json& measured) {
  constexpr int kBatches = 8;
  const auto most = [&](const char* system) -> double {
    const bool known = measured.contains(system) && !measured[system].is_null();
    return known ? measured[system]["max_batch"].get<double>() : 0;
  };
  const double from = most("pytorch");
  const double to = most("home");
  if (from <= 0 || to <= from) return {};
  for (int k = 1; k <= kBatches; ++k) {
    const auto batch =
        static_cast<std::int64_t>(from * std::pow(to / from, static_cast<double>(k) / kBatches));
    for (const HomeSystem& system : systems) {
      const std::string name(system.name);
      if (measured[name].is_null() || measured[name]["max_batch"] < batch) continue;
      const auto trial = try_batch(system, batch);
      if (!trial) return fail(trial.error());
      if (interrupted()) return {};
      if (!trial->fits) continue;
      measured[name]["curve"].push_back(
          {{"batch", batch}, {"samples_per_s", trial->samples_per_s()}});
    }
  }
  return {};
}

Breakdown breakdown_of(const Profile& profile, const Budget& budget, const Planned& planned) {
  const Lowered& lowered = planned.lowered;
  const PlanFile file{profile.fingerprint,  profile.program,  profile.machine,
                      budget.device,        budget.host,      lowered.iteration_time,
                      lowered.compute_time, lowered.strategy, lowered.plan};
  const PlanTimeline timeline = make_timeline(file);
  Breakdown b;
  b.total = timeline.period;
  struct Change {
    Nanos time{};
    int ops = 0;
    int copies = 0;
  };
  std::vector<Change> changes;
  for (const Run& run : timeline.runs) {
    const bool computes =
        file.plan.streams[static_cast<std::size_t>(run.stream)].kind == StreamKind::compute;
    if (computes) b.stall += run.idle;
    if (run.kind == RunKind::recomputation) b.recompute += run.time.end - run.time.start;
    const bool op = computes && run.kind == RunKind::op;
    const bool copy = run.kind == RunKind::copy_in || run.kind == RunKind::copy_out;
    if (!op && !copy) continue;
    for (const Interval& piece : pieces(run.time, timeline.period)) {
      changes.push_back({piece.start, op ? 1 : 0, copy ? 1 : 0});
      changes.push_back({piece.end, op ? -1 : 0, copy ? -1 : 0});
    }
  }
  std::ranges::sort(changes, {}, &Change::time);
  int ops = 0;
  int copies = 0;
  Nanos last{};
  for (const Change& c : changes) {
    if (ops > 0 && copies > 0) b.overlap += c.time - last;
    last = c.time;
    ops += c.ops;
    copies += c.copies;
  }
  return b;
}

}  // namespace tidepool::reproduce
