// Agent: episodes in an environment, and what the network learns from them (DQN paper, Algorithm
// 1).
#pragma once

#include <functional>

#include "base/stop.h"
#include "planners/published/dqn/environment.h"
#include "planners/published/dqn/q_learning.h"
#include "planners/published/dqn/replay_memory.h"

namespace tidepool::dqn {

/// What the agent did in an episode.
struct EpisodeOutcome {
  bool stopped = false;  ///< before its end
  bool feasible = false;
  bool greedy = true;  ///< no random action
  double episode_return = 0;
  double loss = 0;  ///< mean of the gradient steps
};

// Note [Targets]. Equation 5 takes one reward and what the network expects to follow. With
// QLearning::reach n a target has the next n rewards, each discounted once more than the one
// before, and then the discounted value of the state behind them: 1 is equation 5. The default is
// all rewards to the end of the episode, which is no Q-learning (nothing is bootstrapped) but the
// regression of returns: with the few hundred gradient steps that there are, what the network
// expects is mostly error, and the largest of many such values is mostly the largest error. The
// network gets rewards in units of what random actions cost (`set_scale`), so that one learning
// rate suits all programs.
class Agent {
 public:
  /// All must outlive the agent. `network`: null where all actions are random.
  Agent(Environment& environment, QNetwork* network, const QLearning& settings, std::uint64_t seed);

  /// An episode from which the network learns. An action is random iff a uniform draw is above
  /// `greedy_part`; always without a network.
  EpisodeOutcome learn(Bytes limit, double greedy_part, const Stop& stop);

  enum class Follow : std::uint8_t {
    forgotten,
    remembered,  ///< in the replay memory, from which later episodes learn
  };
  /// An episode with no gradient steps: by the network, or random without one. With `first`: its
  /// actions as soon as they are valid, and others only where doing nothing runs out of memory.
  EpisodeOutcome follow(Bytes limit, const Strategy* first, const Stop& stop,
                        Follow how = Follow::forgotten);

  /// What rewards are multiplied by for the network.
  void set_scale(double scale) { scale_ = scale; }

  /// Decisions of all episodes.
  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  [[nodiscard]] std::int32_t random_action();
  [[nodiscard]] std::int32_t best_action();
  [[nodiscard]] std::int32_t action_of(const Strategy& strategy) const;
  void remember(std::vector<Transition> episode);
  void learn_from_memory(EpisodeOutcome& outcome, std::int64_t before, const Stop& stop);

  Environment& environment_;
  QNetwork* network_;
  const QLearning& settings_;
  Random random_;  ///< of actions
  Random replay_;  ///< of batches
  ReplayMemory memory_{kMemory};
  std::int64_t steps_ = 0;
  double scale_ = 1;

  static constexpr std::size_t kMemory = 20'000;
};

}  // namespace tidepool::dqn
