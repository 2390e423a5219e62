#include "trace/block_lives.h"

#include <algorithm>

namespace tidepool {
namespace {

class Finder {
 public:
  Finder(const Recording& recording, const Iteration& iteration)
      : recording_(recording),
        start_(static_cast<std::size_t>(iteration.start)),
        period_(static_cast<std::size_t>(iteration.period)) {}

  BlockLives find() {
    find_live();
    for (std::size_t i = 0; i < period_; ++i) add(static_cast<std::int32_t>(i));
    join();
    count_bytes();
    return std::move(lives_);
  }

 private:
  [[nodiscard]] const TraceEvent& event(std::size_t at) const { return recording_.events[at]; }
  [[nodiscard]] Bytes bytes(BlockId block) const {
    return recording_.blocks[static_cast<std::size_t>(block)].bytes;
  }

  /// Which blocks are live when the iteration begins: all but those freed before it and those whose
  /// first event is a malloc in it or later.
  void find_live() {
    live_.assign(recording_.blocks.size(), false);
    std::vector<char> seen(recording_.blocks.size(), 0);
    for (std::size_t i = 0; i < recording_.events.size(); ++i) {
      const auto b = static_cast<std::size_t>(event(i).block);
      if (seen[b] == 0) live_[b] = event(i).kind != EventKind::malloc || i < start_;
      if (i < start_ && event(i).kind == EventKind::free) live_[b] = false;
      seen[b] = 1;
    }
    life_of_block_.assign(recording_.blocks.size(), kNone);
  }

  void add(std::int32_t position) {
    const TraceEvent& e = event(start_ + static_cast<std::size_t>(position));
    BlockLifeId& id = life_of_block_[static_cast<std::size_t>(e.block)];
    if (id == kNone) {
      id = static_cast<BlockLifeId>(lives_.all.size());
      lives_.all.push_back({});
      lives_.all.back().block = e.block;
    }
    lives_.of_event.push_back(id);
    BlockLife& life = lives_.all[static_cast<std::size_t>(id)];
    if (e.kind == EventKind::malloc) {
      life.malloc_at = position;
    } else if (e.kind == EventKind::free) {
      life.free_at = position;
    } else {
      if (life.first_access == kNone) life.first_access = position;
      life.last_access = position;
    }
  }

  /// A block allocated here and freed in the next iteration ends there where one like it, an
  /// iteration older, ends here.
  void join() {
    for (std::size_t i = start_ + period_; i < start_ + 2 * period_; ++i) {
      if (event(i).kind != EventKind::free) continue;
      const BlockLifeId begun = life_of_block_[static_cast<std::size_t>(event(i).block)];
      const BlockLifeId ended = lives_.of_event[i - start_ - period_];
      if (begun == kNone || lives_.all[static_cast<std::size_t>(begun)].malloc_at == kNone)
        continue;
      const BlockLife& end = lives_.all[static_cast<std::size_t>(ended)];
      if (end.malloc_at == kNone && end.free_at != kNone &&
          bytes(end.block) == bytes(event(i).block)) {
        lives_.all[static_cast<std::size_t>(begun)].rest = ended;
      }
    }
  }

  void count_bytes() {
    Bytes live = recording_.resident;
    lives_.resident = recording_.resident;
    for (std::size_t b = 0; b < live_.size(); ++b) {
      if (!live_[b]) continue;
      const Bytes size = recording_.blocks[b].bytes;
      live += size;
      const BlockLifeId id = life_of_block_[b];
      const bool touched =
          id != kNone && (lives_.all[static_cast<std::size_t>(id)].first_access != kNone ||
                          lives_.all[static_cast<std::size_t>(id)].free_at != kNone);
      if (!touched) lives_.resident += size;
    }
    lives_.peak = live;
    for (std::size_t i = start_; i < start_ + period_; ++i) {
      if (event(i).kind == EventKind::malloc) live += bytes(event(i).block);
      if (event(i).kind == EventKind::free) live -= bytes(event(i).block);
      lives_.peak = std::max(lives_.peak, live);
    }
  }

  const Recording& recording_;
  std::size_t start_;
  std::size_t period_;
  BlockLives lives_;
  std::vector<bool> live_;  ///< per block: when the iteration begins
  std::vector<BlockLifeId> life_of_block_;
};

}  // namespace

BlockLives find_block_lives(const Recording& recording, const Iteration& iteration) {
  return Finder(recording, iteration).find();
}

namespace {

/// `iterations`: 1 or 2, see the header.
std::vector<CyclicLifetime> lifetimes(const Recording& recording, const Iteration& iteration,
                                      const BlockLives& block_lives, std::int32_t iterations) {
  const auto period = static_cast<std::int32_t>(iteration.period);
  const std::int32_t cycle = iterations * period;
  std::vector<char> is_rest(block_lives.all.size(), 0);
  for (const BlockLife& life : block_lives.all) {
    if (life.rest != kNone) is_rest[static_cast<std::size_t>(life.rest)] = 1;
  }
  std::vector<CyclicLifetime> lives;
  const auto add = [&](Bytes bytes, std::int32_t begin, std::int32_t end) {
    if (begin < end) lives.push_back({bytes, begin, end});
  };
  add(block_lives.resident, 0, block_lives.resident > 0 ? cycle : 0);
  for (std::size_t s = 0; s < block_lives.all.size(); ++s) {
    const BlockLife& life = block_lives.all[s];
    const Bytes bytes = recording.blocks[static_cast<std::size_t>(life.block)].bytes;
    if (is_rest[s] != 0) continue;
    if (life.malloc_at == kNone && life.free_at == kNone) {
      add(bytes, 0, cycle);
      continue;
    }
    for (std::int32_t k = 0; k < iterations; ++k) {
      const std::int32_t first = k * period;
      const std::int32_t begin = first + (life.malloc_at == kNone ? 0 : life.malloc_at);
      if (life.rest == kNone) {
        add(bytes, begin, first + (life.free_at == kNone ? period : life.free_at));
        continue;
      }
      const std::int32_t end =
          first + period + block_lives.all[static_cast<std::size_t>(life.rest)].free_at;
      if (end - begin <= cycle) {
        add(bytes, begin, end);
      } else {
        add(bytes, 0, cycle);
        add(bytes, begin, end - cycle);
      }
    }
  }
  return lives;
}

}  // namespace

std::vector<CyclicLifetime> cyclic_lifetimes(const Recording& recording, const Iteration& iteration,
                                             const BlockLives& block_lives) {
  return lifetimes(recording, iteration, block_lives, 1);
}

std::vector<CyclicLifetime> lifetimes_of_two_iterations(const Recording& recording,
                                                        const Iteration& iteration,
                                                        const BlockLives& block_lives) {
  return lifetimes(recording, iteration, block_lives, 2);
}

std::vector<Bytes> moved_blocks(const Recording& recording, const BlockLives& block_lives) {
  std::vector<Bytes> moved;
  for (const BlockLife& life : block_lives.all) {
    if (life.rest == kNone) continue;
    if (block_lives.all[static_cast<std::size_t>(life.rest)].free_at <= life.malloc_at) continue;
    moved.push_back(recording.blocks[static_cast<std::size_t>(life.block)].bytes);
  }
  return moved;
}

bool overlap(const CyclicLifetime& a, const CyclicLifetime& b, std::int32_t cycle) {
  for (std::int32_t shift = -1; shift <= 1; ++shift) {
    if (a.begin < b.end + shift * cycle && b.begin + shift * cycle < a.end) return true;
  }
  return false;
}

}  // namespace tidepool
