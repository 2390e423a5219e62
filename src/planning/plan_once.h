// A planner runs once, inside one budget: what it proposes is lowered, named and proved.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "planners/planner.h"

namespace tidepool {

/// A plan that was lowered and proved.
struct Planned {
  Lowered lowered;
  std::vector<std::string> notes;
  Nanos plan_time{};  ///< planner and lowering, without what the workload took for programs
  Nanos check_time{};
  std::shared_ptr<const QLearningRecord> learning{};  ///< null where nothing was learned

  /// The program that was planned is the workload's for this sub-batch.
  [[nodiscard]] std::int64_t sub_batch() const { return lowered.strategy.sub_batch; }
};

/// The plan that the planner finds. Fails with `infeasible` where it needs more than the budget,
/// and with `runtime` where the planner decided what it may not. Machine memory, files behind the
/// host and what else could be tried are `make_plan`'s.
Result<Planned> plan_once(Planner& planner, Workload& workload, const Machine& machine,
                          const Budget& budget, const PlannerOptions& options);

}  // namespace tidepool
