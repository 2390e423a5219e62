#include "trace/allocators/planned_pool.h"

#include <algorithm>
#include <cassert>

namespace tidepool {

PlannedPool::PlannedPool(std::span<const CyclicLifetime> lives, std::span<const Bytes> offsets,
                         std::int32_t cycle) {
  assert(lives.size() == offsets.size());
  struct At {
    std::int32_t position = 0;
    Event event;
  };
  std::vector<At> events;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    const CyclicLifetime& life = lives[i];
    const bool always = life.end - life.begin == cycle;
    bytes_ = std::max(bytes_, offsets[i] + life.bytes);
    if (always || life.end >= cycle) live_at_start_.push_back({offsets[i], life.bytes});
    if (always) continue;
    events.push_back({life.begin, {life.bytes, offsets[i]}});
    events.push_back({life.end % cycle, {kFree, offsets[i]}});
  }
  std::sort(events.begin(), events.end(),
            [](const At& a, const At& b) { return a.position < b.position; });
  for (const At& at : events) events_.push_back(at.event);
  // Nothing matches this one.
  if (events_.empty()) events_.push_back({0, -1});
}

std::optional<std::vector<CyclicLifetime>> lifetimes_to_serve(const Recording& recording,
                                                              const Iteration& iteration,
                                                              const BlockLives& block_lives) {
  std::vector<char> joined(block_lives.all.size(), 0);
  for (const BlockLife& life : block_lives.all) {
    if (life.rest != kNone) joined[static_cast<std::size_t>(life.rest)] = 1;
  }
  for (std::size_t i = 0; i < block_lives.all.size(); ++i) {
    const BlockLife& life = block_lives.all[i];
    const bool begins = life.malloc_at != kNone;
    const bool ends = life.free_at != kNone;
    if (begins && !ends && life.rest == kNone) return std::nullopt;
    if (ends && !begins && joined[i] == 0) return std::nullopt;
  }
  return lifetimes_of_two_iterations(recording, iteration, block_lives);
}

}  // namespace tidepool
