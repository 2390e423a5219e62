#include "train/measured_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/median.h"
#include "measure/expected_memory.h"
#include "runtime/observe.h"
#include "train/observed_plan.h"
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

/// Plans that take turns, and what came of it.
class Turns {
 public:
  Turns(const Job& job, const Profile& profile, const PlansToMeasure& asked,
        const std::optional<ProcessMemory>& memory, Observer& observer)
      : job_(job), profile_(profile), asked_(asked), memory_(memory), observer_(observer) {}

  Result<MeasuredPlans> run(std::unique_ptr<nn::TrainingRunner> runner) {
    MeasuredPlans measured;
    measured.plans.resize(asked_.plans.size());
    for (MeasuredPlan& plan : measured.plans) plan.has_room = false;
    const std::vector<std::size_t> in_turn = that_have_room(asked_.plans, job_, memory_);
    if (in_turn.empty()) return measured;
    for (const std::size_t i : in_turn) ran_.push_back({i, asked_.plans[i]});
    const DeviceConfig arenas = arenas_of(plans_of(ran_));
    run_.emplace(job_, profile_.machine, *ran_[0].plan, std::move(runner), arenas);
    run_->executor().enter();
    take_turns(ran_, arenas);
    for (const Ran& ran : ran_) measured.plans[ran.place] = figures(ran);
    if (auto corrected = correct(measured); !corrected) return fail(corrected.error());
    return measured;
  }

 private:
  struct Ran {
    std::size_t place = 0;
    const Plan* plan = nullptr;
    std::vector<Nanos> times{};
    std::vector<TimedBlock> timings{};
  };

  static std::vector<const Plan*> plans_of(std::span<const Ran> ran) {
    std::vector<const Plan*> plans;
    for (const Ran& one : ran) plans.push_back(one.plan);
    return plans;
  }

  static MeasuredPlan figures(const Ran& ran) {
    if (ran.times.empty()) return {};
    const auto [least, most] = std::ranges::minmax(ran.times);
    return {median(ran.times), least, most, spread_of(ran.times), std::ssize(ran.times)};
  }

  /// A block each, the first of each with the times of its instructions.
  void take_turns(std::span<Ran> plans, const DeviceConfig& arenas) {
    const std::size_t blocks = plans.size() * kRounds;
    for (std::size_t block = 0; block < blocks && !observer_.stop_requested(); ++block) {
      Ran& ran = plans[block % plans.size()];
      if (std::exchange(begun_, true)) run_->go_on_with(*ran.plan, profile_.machine, arenas);
      observer_.update(static_cast<double>(block) / static_cast<double>(blocks),
                       fmt::format("measuring the plan of {}", ran.plan->planner));
      const bool observed = block < plans.size();
      const RunReport report = observed ? run_->observe(Trials::kBlock, observer_.stop(), {})
                                        : run_->run(Trials::kBlock, observer_.stop(), {});
      std::ranges::copy(run_->measured_times(report, observed), std::back_inserter(ran.times));
      if (observed) ran.timings.push_back(run_->executor().timings());
    }
  }

  /// For each budget.
  Result<void> correct(MeasuredPlans& measured) {
    const std::set<std::size_t> budgets(asked_.budgets.begin(), asked_.budgets.end());
    for (const std::size_t budget : budgets) {
      if (!asked_.correct || observer_.stop_requested()) break;
      std::vector<Ran> of_budget;
      for (const Ran& ran : ran_) {
        if (asked_.budgets[ran.place] == budget && !ran.times.empty()) of_budget.push_back(ran);
      }
      if (of_budget.empty()) continue;
      if (auto done = correct(of_budget, measured); !done) return done;
    }
    return {};
  }

  Result<void> correct(std::span<const Ran> ran, MeasuredPlans& measured) {
    std::vector<Observation> seen;
    for (const Ran& one : ran) seen.push_back(observe(*one.plan, {}, one.timings));
    std::vector<ObservedPlan> observed;
    for (std::size_t i = 0; i < ran.size(); ++i) observed.push_back({*ran[i].plan, seen[i]});
    const TimeModel now(profile_.program, profile_.machine, observed);
    const auto fastest =
        std::ranges::min_element(ran, {}, [](const Ran& one) { return median(one.times); });
    // Planning has the memory that the device leaves.
    if (memory_) run_->close_device();
    auto plan = asked_.correct(now, fastest->place);
    if (!plan) return fail(plan.error());
    if (!*plan || (*plan)->lowered.streaming || observer_.stop_requested()) return {};
    std::vector<Ran> both{{fastest->place, fastest->plan}, {0, &(*plan)->lowered.plan}};
    const std::vector<const Plan*> plans = plans_of(both);
    if (that_have_room(plans, job_, memory_).size() < plans.size()) return {};
    take_turns(both, arenas_of(plans));
    measured.corrected.push_back(
        {fastest->place, now.time((*plan)->lowered.plan), figures(both[1]), figures(both[0])});
    return {};
  }

  const Job& job_;
  const Profile& profile_;
  const PlansToMeasure& asked_;
  const std::optional<ProcessMemory>& memory_;
  Observer& observer_;
  std::vector<Ran> ran_;
  std::optional<TrainingRun> run_;
  bool begun_ = false;
};

}  // namespace

Result<MeasuredPlans> measure_plans(const JobSpec& spec, const Profile& profile,
                                    const PlansToMeasure& asked,
                                    const std::optional<ProcessMemory>& memory,
                                    Observer& observer) {
  if (asked.plans.empty()) return MeasuredPlans{};
  const auto job = Job::make(spec, observer);
  if (!job) return fail(job.error());
  auto runner = job->make_runner();
  if (!runner) return fail(runner.error());
  return Turns(*job, profile, asked, memory, observer).run(std::move(*runner));
}

}  // namespace tidepool
