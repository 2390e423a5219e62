// The planners `dqn-swap` and `dqn`: swaps, or swaps and recomputations, by Q-learning (GPU memory
// management for deep neural networks using deep Q-network; shared/papers).
//
// Note [DQN]. The agent is trained on the program to be planned, by Algorithm 1, under a load limit
// a little below the budget: addresses need more than the load. Each complete episode is also timed
// by the project's evaluator under the budget; its copies in are no later than the simulator's. The
// fastest ones are lowered with addresses, and the fastest plan is returned, whichever episode it
// is from. Where none has addresses, the fastest are played again under tighter limits, with what
// else then has to leave by the network; where that fails too, everything leaves; at last the
// streaming schedule is taken. Algorithms and sub-batch are the policy's and the workload's.
//
// Beyond the paper, unless QLearning::improves is off: it begins with plans of other planners, and
// mutates the best strategy between episodes (training.h, Note [Mutations]). Where no episode and
// no mutation is faster than another planner's plan that plan is returned, and the note says so.
// Copies out begin behind the op that reads; in the paper's figures 1 and 4 beside it
// (EnvironmentOptions::alongside): plans of this project wait for the op, which keeps a copy from
// reading what an op may still read through its own stream's order.
#pragma once

#include <functional>
#include <memory>

#include "planners/planner.h"
#include "planners/published/dqn/q_network.h"

namespace tidepool {

enum class DqnMode : std::uint8_t { swap, swap_and_recompute };

/// `make_network` is called when a plan needs one.
std::unique_ptr<Planner> make_dqn(
    DqnMode mode, std::function<Result<std::unique_ptr<dqn::QNetwork>>(const dqn::QNetworkOptions&)>
                      make_network);

}  // namespace tidepool
