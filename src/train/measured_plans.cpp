#include "train/measured_plans.h"

#include <fmt/format.h>

#include <optional>

#include "train/training_run.h"
#include "train/trials.h"

namespace tidepool {
namespace {

constexpr std::size_t kRounds = 3;

}  // namespace

Result<std::vector<MeasuredPlan>> measure_plans(const JobSpec& spec, const Machine& machine,
                                                std::span<const Plan* const> plans,
                                                Observer& observer) {
  std::vector<MeasuredPlan> measured(plans.size());
  if (plans.empty()) return measured;
  const auto job = Job::make(spec, observer);
  if (!job) return fail(job.error());
  auto runner = job->make_runner();
  if (!runner) return fail(runner.error());
  DeviceConfig arenas = device_config(*plans[0]);
  for (const Plan* plan : plans) arenas = joined(arenas, device_config(*plan));
  TrainingRun run(*job, machine, *plans[0], std::move(*runner));
  run.executor().enter();
  std::vector<std::vector<Nanos>> times(plans.size());
  const std::size_t blocks = plans.size() * kRounds;
  for (std::size_t block = 0; block < blocks && !observer.stop_requested(); ++block) {
    const std::size_t i = block % plans.size();
    if (block > 0) run.go_on_with(*plans[i], machine, arenas);
    observer.update(static_cast<double>(block) / static_cast<double>(blocks),
                    fmt::format("measuring the plan of {}", plans[i]->planner));
    const RunReport report = run.run(Trials::kBlock, observer.stop(), {});
    std::ranges::copy(run.measured_times(report, false), std::back_inserter(times[i]));
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!times[i].empty()) measured[i] = {median(times[i]), std::ssize(times[i])};
  }
  return measured;
}

}  // namespace tidepool
