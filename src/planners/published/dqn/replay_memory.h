// Experience replay (DQN paper, section 4.10).
#pragma once

#include <cstddef>
#include <vector>

#include "base/random.h"
#include "planners/published/dqn/q_network.h"

namespace tidepool::dqn {

/// Keeps the last `capacity` transitions.
class ReplayMemory {
 public:
  explicit ReplayMemory(std::size_t capacity) : capacity_(capacity) {}

  void add(Transition transition);
  [[nodiscard]] std::size_t size() const { return kept_.size(); }
  /// So many, drawn uniformly with replacement; fewer are not kept than one. They are valid until
  /// the next `add`.
  [[nodiscard]] std::vector<const Transition*> sample(std::size_t count, Random& random) const;

 private:
  std::size_t capacity_;
  std::size_t next_ = 0;  ///< to be replaced
  std::vector<Transition> kept_;
};

}  // namespace tidepool::dqn
