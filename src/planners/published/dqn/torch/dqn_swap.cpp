#include "planners/published/dqn/dqn.h"
#include "planners/published/dqn/q_learning.h"
#include "planners/published/dqn/torch/torch_network.h"
#include "planners/registry.h"

namespace tidepool {

PlannerInfo dqn_swap_planner() {
  return {.name = "dqn-swap",
          .description = "swaps as a deep Q-network learns, in episodes of this iteration (DQN)",
          .make = [] { return make_dqn(DqnMode::swap, dqn::make_torch_network); },
          .time_limit = std::chrono::seconds(60),
          .options = q_learning_options(),
          .check = check_q_learning,
          .learns = true,
          .seeds_searches = false};
}

}  // namespace tidepool
