#include "trace/stays.h"

#include <algorithm>

namespace tidepool {
namespace {

class Finder {
 public:
  Finder(const Recording& recording, const Iteration& iteration)
      : recording_(recording),
        start_(static_cast<std::size_t>(iteration.start)),
        period_(static_cast<std::size_t>(iteration.period)) {}

  Stays find() {
    find_live();
    for (std::size_t i = 0; i < period_; ++i) add(static_cast<std::int32_t>(i));
    join();
    count_bytes();
    return std::move(stays_);
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
    stay_of_block_.assign(recording_.blocks.size(), kNone);
  }

  void add(std::int32_t position) {
    const TraceEvent& e = event(start_ + static_cast<std::size_t>(position));
    StayId& id = stay_of_block_[static_cast<std::size_t>(e.block)];
    if (id == kNone) {
      id = static_cast<StayId>(stays_.all.size());
      stays_.all.push_back({});
      stays_.all.back().block = e.block;
    }
    stays_.of_event.push_back(id);
    BlockStay& stay = stays_.all[static_cast<std::size_t>(id)];
    if (e.kind == EventKind::malloc) {
      stay.malloc_at = position;
    } else if (e.kind == EventKind::free) {
      stay.free_at = position;
    } else {
      if (stay.first_access == kNone) stay.first_access = position;
      stay.last_access = position;
    }
  }

  /// A block allocated here and freed in the next iteration ends there where one like it, an
  /// iteration older, ends here.
  void join() {
    for (std::size_t i = start_ + period_; i < start_ + 2 * period_; ++i) {
      if (event(i).kind != EventKind::free) continue;
      const StayId begun = stay_of_block_[static_cast<std::size_t>(event(i).block)];
      const StayId ended = stays_.of_event[i - start_ - period_];
      if (begun == kNone || stays_.all[static_cast<std::size_t>(begun)].malloc_at == kNone)
        continue;
      const BlockStay& end = stays_.all[static_cast<std::size_t>(ended)];
      if (end.malloc_at == kNone && end.free_at != kNone &&
          bytes(end.block) == bytes(event(i).block)) {
        stays_.all[static_cast<std::size_t>(begun)].rest = ended;
      }
    }
  }

  void count_bytes() {
    Bytes live = recording_.resident;
    stays_.resident = recording_.resident;
    for (std::size_t b = 0; b < live_.size(); ++b) {
      if (!live_[b]) continue;
      const Bytes size = recording_.blocks[b].bytes;
      live += size;
      const StayId id = stay_of_block_[b];
      const bool touched =
          id != kNone && (stays_.all[static_cast<std::size_t>(id)].first_access != kNone ||
                          stays_.all[static_cast<std::size_t>(id)].free_at != kNone);
      if (!touched) stays_.resident += size;
    }
    stays_.peak = live;
    for (std::size_t i = start_; i < start_ + period_; ++i) {
      if (event(i).kind == EventKind::malloc) live += bytes(event(i).block);
      if (event(i).kind == EventKind::free) live -= bytes(event(i).block);
      stays_.peak = std::max(stays_.peak, live);
    }
  }

  const Recording& recording_;
  std::size_t start_;
  std::size_t period_;
  Stays stays_;
  std::vector<bool> live_;  ///< per block: when the iteration begins
  std::vector<StayId> stay_of_block_;
};

}  // namespace

Stays find_stays(const Recording& recording, const Iteration& iteration) {
  return Finder(recording, iteration).find();
}

namespace {

/// `iterations`: 1 or 2, see the header.
std::vector<CyclicLifetime> lifetimes(const Recording& recording, const Iteration& iteration,
                                      const Stays& stays, std::int32_t iterations) {
  const auto period = static_cast<std::int32_t>(iteration.period);
  const std::int32_t cycle = iterations * period;
  std::vector<char> is_rest(stays.all.size(), 0);
  for (const BlockStay& stay : stays.all) {
    if (stay.rest != kNone) is_rest[static_cast<std::size_t>(stay.rest)] = 1;
  }
  std::vector<CyclicLifetime> lives;
  const auto add = [&](Bytes bytes, std::int32_t begin, std::int32_t end) {
    if (begin < end) lives.push_back({bytes, begin, end});
  };
  add(stays.resident, 0, stays.resident > 0 ? cycle : 0);
  for (std::size_t s = 0; s < stays.all.size(); ++s) {
    const BlockStay& stay = stays.all[s];
    const Bytes bytes = recording.blocks[static_cast<std::size_t>(stay.block)].bytes;
    if (is_rest[s] != 0) continue;
    if (stay.malloc_at == kNone && stay.free_at == kNone) {
      add(bytes, 0, cycle);
      continue;
    }
    for (std::int32_t k = 0; k < iterations; ++k) {
      const std::int32_t first = k * period;
      const std::int32_t begin = first + (stay.malloc_at == kNone ? 0 : stay.malloc_at);
      if (stay.rest == kNone) {
        add(bytes, begin, first + (stay.free_at == kNone ? period : stay.free_at));
        continue;
      }
      const std::int32_t end =
          first + period + stays.all[static_cast<std::size_t>(stay.rest)].free_at;
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
                                             const Stays& stays) {
  return lifetimes(recording, iteration, stays, 1);
}

std::vector<CyclicLifetime> lifetimes_of_two_iterations(const Recording& recording,
                                                        const Iteration& iteration,
                                                        const Stays& stays) {
  return lifetimes(recording, iteration, stays, 2);
}

std::vector<Bytes> moved_blocks(const Recording& recording, const Stays& stays) {
  std::vector<Bytes> moved;
  for (const BlockStay& stay : stays.all) {
    if (stay.rest == kNone) continue;
    if (stays.all[static_cast<std::size_t>(stay.rest)].free_at <= stay.malloc_at) continue;
    moved.push_back(recording.blocks[static_cast<std::size_t>(stay.block)].bytes);
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
