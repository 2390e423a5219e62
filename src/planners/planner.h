// Planner: proposes which tensors stay, leave or are computed again, for one workload, machine and
// budget. Naming, lowering and the proof are `make_plan`'s. Planners never touch devices.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "planners/planner_context.h"
#include "planners/q_learning_record.h"

namespace tidepool {

struct PlannerOutput {
  /// Which `make_plan` lowers under the budget; or a complete plan, where the planner has lowered
  /// its choice or decides addresses itself.
  std::variant<Strategy, Lowered> choice;
  std::vector<std::string> notes;                     ///< for people: what limited the result
  std::shared_ptr<const QLearningRecord> learning{};  ///< null where nothing was learned
};

class Planner {
 public:
  virtual ~Planner() = default;
  /// As it is written into plans.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Fails with `infeasible`, naming the smallest budget that is enough, where this planner finds
  /// none. Asked to stop it returns the best found so far, or fails with `interrupted`.
  virtual Result<PlannerOutput> plan(PlannerContext& context) = 0;
};

}  // namespace tidepool
