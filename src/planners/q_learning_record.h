// QLearningRecord: what a planner that learns a Q-network did, episode by episode.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tidepool {

struct QLearningEpisode {
  std::int64_t steps = 0;  ///< decisions until the end of this episode, of all episodes
  double episode_return = 0;
  double overhead = 0;  ///< of its plan over an iteration without a budget; where it is feasible
  double best = 0;      ///< least overhead until then; below 0: none was feasible
  double loss = 0;      ///< mean of its gradient steps
  bool feasible = false;
  bool greedy = false;  ///< no random action
};

struct QLearningRecord {
  std::string network;  ///< bytes of the network as learned, QNetwork::save
  std::vector<QLearningEpisode> episodes;
};

}  // namespace tidepool
