#include "train/measured_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "measure/expected_memory.h"
#include "train/training_run.h"
#include "train/trials.h"

namespace tidepool {
namespace {

constexpr std::size_t kRounds = 3;
/// Of the room that is left for what running differs by so much may go to the plans of several
/// planners: what they take is measured here, and nothing is planned or evaluated afterwards.
constexpr Bytes kPartForPlans = 8 * kMiB;

DeviceConfig arenas_of(std::span<const Plan* const> plans) {
  DeviceConfig arenas = device_config(*plans[0]);
  for (const Plan* plan : plans) arenas = joined(arenas, device_config(*plan));
  return arenas;
}

bool has_room(const ProcessMemory& before, const Job& job, const DeviceConfig& arenas) {
  ProcessMemory memory = before;
  memory.resident = std::max(before.resident, resident_beside_arenas() - kPartForPlans);
  Bytes device = 0;
  for (const auto& arena : arenas.arenas) {
    if (arena.kind == SpaceKind::device) device = arena.bytes;
    if (arena.kind == SpaceKind::host) memory.host = arena.bytes;
    if (arena.kind == SpaceKind::file) memory.hashes = bytes_of_hashes(job, arena.bytes);
  }
  return memory.holds(device);
}

/// Those that find room together, by their place; the largest are left out.
std::vector<std::size_t> that_have_room(std::span<const Plan* const> plans, const Job& job,
                                        const std::optional<ProcessMemory>& memory) {
  std::vector<const Plan*> in(plans.begin(), plans.end());
  std::vector<std::size_t> places(plans.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  while (memory && !in.empty() && !has_room(*memory, job, arenas_of(in))) {
    const auto largest = std::ranges::max_element(
        in, {}, [](const Plan* plan) { return plan->device_bytes() + plan->host_bytes(); });
    places.erase(places.begin() + (largest - in.begin()));
    in.erase(largest);
  }
  return places;
}

}  // namespace

Result<std::vector<MeasuredPlan>> measure_plans(const JobSpec& spec, const Machine& machine,
                                                std::span<const Plan* const> plans,
                                                const std::optional<ProcessMemory>& memory,
                                                Observer& observer) {
  std::vector<MeasuredPlan> measured(plans.size());
  if (plans.empty()) return measured;
  const auto job = Job::make(spec, observer);
  if (!job) return fail(job.error());
  auto runner = job->make_runner();
  if (!runner) return fail(runner.error());
  const std::vector<std::size_t> in_turn = that_have_room(plans, *job, memory);
  for (MeasuredPlan& plan : measured) plan.has_room = false;
  if (in_turn.empty()) return measured;
  std::vector<const Plan*> running;
  for (const std::size_t i : in_turn) running.push_back(plans[i]);
  const DeviceConfig arenas = arenas_of(running);
  TrainingRun run(*job, machine, *running[0], std::move(*runner), arenas);
  run.executor().enter();
  std::vector<std::vector<Nanos>> times(running.size());
  const std::size_t blocks = running.size() * kRounds;
  for (std::size_t block = 0; block < blocks && !observer.stop_requested(); ++block) {
    const std::size_t i = block % running.size();
    if (block > 0) run.go_on_with(*running[i], machine, arenas);
    observer.update(static_cast<double>(block) / static_cast<double>(blocks),
                    fmt::format("measuring the plan of {}", running[i]->planner));
    const RunReport report = run.run(Trials::kBlock, observer.stop(), {});
    std::ranges::copy(run.measured_times(report, false), std::back_inserter(times[i]));
  }
  for (std::size_t i = 0; i < running.size(); ++i) {
    MeasuredPlan& plan = measured[in_turn[i]];
    plan.has_room = true;
    if (times[i].empty()) continue;
    const auto [least, most] = std::ranges::minmax(times[i]);
    plan = {median(times[i]), least, most, std::ssize(times[i])};
  }
  return measured;
}

}  // namespace tidepool
