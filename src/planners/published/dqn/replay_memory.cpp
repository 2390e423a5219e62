#include "planners/published/dqn/replay_memory.h"

#include <utility>

#include "base/invariant.h"

namespace tidepool::dqn {

void ReplayMemory::add(Transition transition) {
  if (kept_.size() < capacity_) {
    kept_.push_back(std::move(transition));
    return;
  }
  kept_[next_] = std::move(transition);
  next_ = (next_ + 1) % capacity_;
}

std::vector<const Transition*> ReplayMemory::sample(std::size_t count, Random& random) const {
  invariant(!kept_.empty(), "samples are of what was kept");
  std::vector<const Transition*> batch(count);
  for (const Transition*& of : batch) of = &kept_[random.below(kept_.size())];
  return batch;
}

}  // namespace tidepool::dqn
