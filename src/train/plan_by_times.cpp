#include "train/plan_by_times.h"

#include "train/rival_plans.h"

namespace tidepool {
namespace {

/// Of the leader's time. Where the machine is busy a search has not come as far as the first one.
constexpr double kWorthATrial = 1.02;

}  // namespace

Result<std::optional<Planned>> plan_by_times(Planner& planner, const TimesTask& task) {
  const AlgorithmChoice choice = chosen_algorithms(task.program, task.leader);
  const Program charged = task.now.charged(task.leader);
  auto plan =
      plan_of_rival(planner, {choice, charged, task.now.machine(), task.budget, task.options});
  if (!plan || !*plan) return plan;
  const double most = kWorthATrial * to_seconds(task.now.time(task.leader));
  if (to_seconds(task.now.time((*plan)->lowered.plan)) > most) return std::optional<Planned>();
  return plan;
}

}  // namespace tidepool
