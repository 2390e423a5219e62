// Which plans take turns, and on what device.
#include <algorithm>
#include <utility>

#include "runtime/executor.h"
#include "train/trials.h"

namespace tidepool {

/// What has had fewest blocks; none where only one is left, or all have had theirs.
std::optional<std::size_t> Trials::next_in_turn() const {
  std::optional<std::size_t> turn;
  int in = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].out) continue;
    ++in;
    if (candidates_[i].blocks >= rounds_) continue;
    if (!turn || candidates_[i].blocks < candidates_[*turn].blocks) turn = i;
  }
  return in > 1 ? turn : std::nullopt;
}

bool Trials::wants_another() const {
  // Once it was no better there is no reason for another.
  if (corrections_ > 0 && best() + 1 != candidates_.size()) return false;
  return corrections_ < (learns_ ? kCorrections : 2);
}

/// Of one more plan and the best so far.
Result<void> Trials::another_heat() {
  if (!wants_another()) return {};
  const std::size_t leader = best();
  for (Candidate& c : candidates_) c.out = true;
  candidates_[leader].out = false;
  const std::size_t before = candidates_.size();
  const auto added = add(learns_ ? &Trials::add_learned : &Trials::add_corrected);
  if (!added) return fail(added.error());
  if (candidates_.size() > before) candidates_[leader].blocks = 0;
  return {};
}

/// More plans, while nothing else takes the memory that there is; those that find no room are not
/// tried. The slowest come last.
Result<void> Trials::add(Result<void> (Trials::*plans)()) {
  const std::size_t before = candidates_.size();
  auto added = room_.lend([&] { return (this->*plans)(); });
  if (!added) return added;
  while (candidates_.size() > before && !have_room()) {
    candidates_.pop_back();
    room_.measure();
  }
  return {};
}

std::vector<const Plan*> Trials::in_turn() const {
  std::vector<const Plan*> plans;
  for (const Candidate& c : candidates_) {
    if (!c.out) plans.push_back(&c.plan.planned.lowered.plan);
  }
  return plans;
}

bool Trials::have_room() const {
  const std::vector<const Plan*> plans = in_turn();
  Bytes timings = 0;
  for (const Plan* plan : plans) {
    timings += std::ssize(plan->steady.instructions) * rounds_ * kBlock *
               static_cast<Bytes>(sizeof(OpTiming));
  }
  return room_.holds(plans, timings);
}

DeviceConfig Trials::arenas() const {
  DeviceConfig arenas = device_config(start_.running());
  if (settled_) return arenas;
  for (const Plan* plan : in_turn()) arenas = joined(arenas, device_config(*plan));
  return arenas;
}

}  // namespace tidepool
