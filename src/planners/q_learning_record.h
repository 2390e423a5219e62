// QLearningRecord: what a planner that learns a Q-network did, episode by episode.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tidepool {

struct QLearningEpisode {
  std::int64_t steps = 0;  ///< decisions until the end of this episode, of all episodes
  double episode_return = 0;
  /// Of its plan over an iteration without a budget; without addresses, which may cost more.
  /// Nothing where it is not feasible.
  std::optional<double> overhead;
  std::optional<double> best;  ///< the least until then
  double loss = 0;             ///< mean of its gradient steps
  bool greedy = false;         ///< no random action
};

struct QLearningRecord {
  /// Bytes of the network that played the best of the greedy episodes, of the last one where none
  /// of them was feasible; QNetwork::save.
  std::string network;
  std::optional<double> greedy;  ///< the overhead of what that network plays
  std::vector<QLearningEpisode> episodes;
  std::int64_t mutations = 0;         ///< of the best strategy, played between the episodes
  std::int64_t better_at_random = 0;  ///< of those: became the best, filled up at random
  std::int64_t better_by_network = 0;  ///< ... by the network
  /// The plan is no episode's: none could be carried out with addresses, so everything leaves.
  bool fallback = false;
};

}  // namespace tidepool
