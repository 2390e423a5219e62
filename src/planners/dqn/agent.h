// Agent: episodes in an environment, and what the network learns from them (DQN paper, Algorithm
// 1).
#pragma once

#include <functional>

#include "base/stop.h"
#include "planners/dqn/environment.h"
#include "planners/dqn/replay_memory.h"
#include "planners/planner_context.h"

namespace tidepool::dqn {

/// What the agent did in an episode.
struct EpisodeOutcome {
  bool stopped = false;  ///< before its end
  bool feasible = false;
  bool greedy = true;  ///< no random action
  double episode_return = 0;
  double loss = 0;  ///< mean of the gradient steps
};

struct AgentOptions {
  double scale = 1;
  int steps = 1;
};

class Agent {
 public:
  AgentOptions options;
  /// All must outlive the agent. `network`: null where all actions are random.
  Agent(Environment& environment, QNetwork* network, const QLearning& settings, std::uint64_t seed);

  /// An episode from which the network learns. An action is random iff a uniform draw is above
  /// `greedy_part`; always without a network.
  EpisodeOutcome learn(Bytes limit, double greedy_part, const Stop& stop);

  /// An episode from which nobody learns: by the network, or random without one. With `first`: its
  /// actions as soon as they are valid, and others only where doing nothing runs out of memory.
  EpisodeOutcome follow(Bytes limit, const Strategy* first, const Stop& stop);

  /// Decisions of all episodes.
  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  [[nodiscard]] std::int32_t random_action();
  [[nodiscard]] std::int32_t best_action();
  [[nodiscard]] std::int32_t action_of(const Strategy& strategy) const;
  void step_of_learning(EpisodeOutcome& outcome, int& gradient_steps);

  Environment& environment_;
  QNetwork* network_;
  const QLearning& settings_;
  Random random_;
  ReplayMemory memory_{kMemory};
  std::int64_t steps_ = 0;

  static constexpr std::size_t kMemory = 20'000;
};

}  // namespace tidepool::dqn
