#include "train/rival_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

/// No planner takes more of the limit than this, however few have had their turn.
constexpr int kParts = 4;

/// Those that may be fast, the ones that make most of their time first.
std::vector<const PlannerInfo*> rivals_of_planner(std::string_view own) {
  std::vector<const PlannerInfo*> rivals;
  for (const PlannerInfo& info : planner_list()) {
    const bool searches = info.rivals != Rivals::none;
    if (info.name == own || info.learns || info.keeps_everything) continue;
    if (info.seeds_searches || searches) rivals.push_back(&info);
  }
  std::ranges::stable_sort(rivals, {}, [](const PlannerInfo* info) {
    return info->begins_searches          ? 0
           : info->rivals != Rivals::none ? 1
           : info->needs_time             ? 2
           : info->is_slow                ? 4
                                          : 3;
  });
  return rivals;
}

}  // namespace

Result<std::optional<Planned>> plan_of_rival(Planner& planner, const RivalTask& task) {
  auto planned =
      plan_with(task.choice, planner, task.program, task.machine, task.budget, task.options);
  if (planned) return std::optional(std::move(*planned));
  const ErrorCode code = planned.error().code;
  if (code == ErrorCode::interrupted || code == ErrorCode::infeasible) {
    return std::optional<Planned>();
  }
  return fail(planned.error());
}

Result<std::vector<Planned>> rival_plans(std::string_view own, const RivalTask& task,
                                         Observer& observer) {
  std::vector<Planned> plans;
  const Nanos limit = task.options.time_limit;
  const auto end = Clock::now() + limit;
  for (const PlannerInfo* info : rivals_of_planner(own)) {
    if (observer.stop_requested()) break;
    RivalTask mine = task;
    if (task.options.evaluation_limit == 0) {
      const Nanos left = end - Clock::now();
      if (left <= Nanos{0}) break;
      mine.options.time_limit = std::min(left, limit / kParts);
      const auto late = Clock::now() + mine.options.time_limit;
      // Some know of no limit.
      mine.options.stop = task.options.stop.or_when([late] { return Clock::now() > late; });
    }
    observer.update(0, fmt::format("{} plans by the times of now", info->name));
    auto plan = plan_of_rival(*info->make(), mine);
    if (!plan) return fail(plan.error());
    if (*plan && !(*plan)->lowered.streaming) plans.push_back(std::move(**plan));
  }
  return plans;
}

}  // namespace tidepool
