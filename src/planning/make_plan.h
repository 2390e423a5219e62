// From a planner to a proved plan: `make_plan` lowers what the planner proposes, names it, keeps it
// inside every budget and proves it.
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

/// Runs the planner, lowers what it chose, of whatever sub-batch and algorithms, and proves the
/// result with `check`. The machine's own memory limits the budget too, see `within_memory`.
Result<Planned> make_plan(Planner& planner, Workload& workload, const Machine& machine,
                          const Budget& wanted, const PlannerOptions& options);

}  // namespace tidepool
