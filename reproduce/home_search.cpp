#include "home_search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "base/json.h"
#include "ir/load_profile.h"
#include "planners/published/home/home.h"
#include "planners/toolkit/load_limit.h"

namespace tidepool::reproduce {
namespace {

using Clock = std::chrono::steady_clock;

/// As the planner searches: its executor keeps what it has made again.
constexpr RegeneratedMaps kRegenerated = RegeneratedMaps::stay;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Microseconds of one evaluation of a policy, on one thread: mean over some tenths of a second.
double evaluation_us(const PolicyModel& model, const std::vector<std::uint8_t>& policy,
                     Bytes limit) {
  constexpr double kSeconds = 0.2;
  PolicyEvaluator evaluator(model, kRegenerated);
  const auto begin = Clock::now();
  std::int64_t count = 0;
  while (seconds_since(begin) < kSeconds) {
    for (int i = 0; i < 16; ++i, ++count) evaluator.evaluate(policy, limit);
  }
  return 1e6 * seconds_since(begin) / static_cast<double>(count);
}

/// Iterations until the best is within a percent of what it ends at.
std::int64_t close_after(const SwarmResult& found) {
  const auto close = std::ranges::find_if(found.curve, [&](const SwarmIteration& i) {
    return static_cast<double>(i.best) <= 1.01 * static_cast<double>(found.cost);
  });
  return close - found.curve.begin();
}

Json curve_json(const SwarmResult& found) {
  Json curve = Json::array();
  for (const SwarmIteration& i : found.curve) {
    Json point = {{"feasible", i.feasible}};
    const bool solved = i.best < PolicyEvaluator::kDoesNotFit;
    point["best_ms"] = solved ? Json(static_cast<double>(i.best) * 1e-6) : Json(nullptr);
    point["average_ms"] = i.feasible > 0 ? Json(i.average * 1e-6) : Json(nullptr);
    point["worst_ms"] = i.feasible > 0 ? Json(static_cast<double>(i.worst) * 1e-6) : Json(nullptr);
    curve.push_back(std::move(point));
  }
  return curve;
}

/// `begin` is read whenever it asks the clock.
SwarmOptions swarm_of(const HomeSearchOptions& options, const Clock::time_point& begin) {
  SwarmOptions swarm;
  swarm.particles = options.particles;
  swarm.seed = options.seed;
  swarm.threads = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 16);
  const bool timed = options.time_limit > Nanos{0};
  if (!timed) swarm.evaluations = options.evaluations;
  swarm.stop = [&options, &begin, timed] {
    return options.stop.requested() ||
           (timed && seconds_since(begin) > 1e-3 * to_ms(options.time_limit));
  };
  return swarm;
}

}  // namespace

Json home_search_figures(const Profile& profile, const Budget& budget,
                         const HomeSearchOptions& options) {
  const Program& program = profile.program;
  const auto algorithms = least_workspace_algorithms(program);
  Lowering lowering(program, profile.machine);
  const FeatureMaps maps(program, lowering.index(), profile.machine, algorithms, MayDecide{});
  const PolicyModel model(program, lowering.index(), profile.machine, algorithms, maps);
  if (maps.maps().empty()) return nullptr;
  constexpr int kAttempts = 4;
  LoadLimit limit(budget.device, 40);
  auto begin = Clock::now();
  const SwarmOptions swarm = swarm_of(options, begin);
  // Where a policy's addresses do not fit the limit is tightened, as in the planner.
  SwarmResult found;
  std::optional<Lowered> lowered;
  double search_s = 0;
  for (int attempt = 0; attempt < kAttempts && !lowered; ++attempt) {
    begin = Clock::now();
    found = search_policy(maps, model, limit.bytes(), kRegenerated, swarm, false);
    search_s = seconds_since(begin);
    if (options.stop.requested() || found.cost >= PolicyEvaluator::kDoesNotFit) return nullptr;
    const auto strategy =
        policy_strategy(program, lowering.index(), algorithms, maps, found.position);
    if (!strategy) return nullptr;
    LowerOptions lower;
    lower.load_limit = limit.bytes();
    Trial trial = place(lowering, *strategy, budget, lower);
    if (trial.lowered) {
      lowered = std::move(trial.lowered);
    } else {
      limit.tighten(trial.needed > 0 ? trial.excess(budget) : 0);
    }
  }
  const double evaluate_us = evaluation_us(model, found.position, limit.bytes());
  Json json = {{"batch", program.batch},
               {"feature_maps", maps.maps().size()},
               {"search_s", search_s},
               {"threads", swarm.threads},
               {"particles", swarm.particles},
               {"iterations", found.iterations},
               {"complete", found.converged},
               {"evaluations", found.evaluations},
               {"evaluate_us", evaluate_us},
               {"particle_update_us", 2 * static_cast<double>(maps.maps().size()) * evaluate_us},
               {"close_after", close_after(found)},
               {"curve", curve_json(found)},
               {"predicted_ms", static_cast<double>(found.cost) * 1e-6}};
  const double predicted = static_cast<double>(found.cost) * 1e-6;
  const double actual = lowered ? to_ms(lowered->iteration_time) : 0;
  json["lowered_ms"] = lowered ? Json(actual) : Json(nullptr);
  json["prediction_error"] = lowered ? Json(std::abs(predicted - actual) / actual) : Json(nullptr);
  return json;
}

}  // namespace tidepool::reproduce
