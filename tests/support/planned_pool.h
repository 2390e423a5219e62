// A pool whose addresses were all decided beforehand: what SmartPool serves mallocs with
// (SmartPool/AutoSwap, sections III and V).
//
// Note [Serving by position]. The plan is a cycle of mallocs and frees. The pool knows where in it
// the caller is, so serving a request is a comparison with the one planned there. As long as
// requests come as planned, no two live blocks share a byte: the packing says so. A request that is
// not the planned one is refused and changes nothing; the caller serves it elsewhere. After an
// additional request the next ones match again. After one that was left out none does: then the
// caller begins the cycle anew when what is live is again what the plan starts with.
#pragma once

#include <algorithm>
#include <cassert>
#include <optional>
#include <span>
#include <vector>

#include "trace/block_lives.h"

namespace tidepool {

class PlannedPool {
 public:
  struct Block {
    Bytes offset = 0;
    Bytes bytes = 0;
  };

  /// Each lifetime of a cycle of `cycle` events begins with the event that is its malloc and ends
  /// with the one that is its free, except those that take up the whole cycle, which have neither.
  /// One offset for each, from a packing: lifetimes that share a moment share no byte.
  PlannedPool(std::span<const CyclicLifetime> lives, std::span<const Bytes> offsets,
              std::int32_t cycle);

  /// Where the block lies in the pool; nothing when this is not the planned malloc. `bytes` > 0.
  std::optional<Bytes> malloc(Bytes bytes) {
    const Event& event = events_[position_];
    if (event.bytes != bytes) return std::nullopt;
    advance();
    return event.offset;
  }

  /// `offset`: of a block that the pool served, or that was live at the start. False when this is
  /// not the planned free.
  [[nodiscard]] bool free(Bytes offset) {
    const Event& event = events_[position_];
    if (event.bytes != kFree || event.offset != offset) return false;
    advance();
    return true;
  }

  /// What is live when the cycle begins, and where it has to lie. It ends like that, too.
  [[nodiscard]] std::span<const Block> live_at_start() const { return live_at_start_; }
  [[nodiscard]] bool at_start() const { return position_ == 0; }
  /// Only while exactly live_at_start() is live.
  void begin_cycle() { position_ = 0; }
  /// Size of the pool.
  [[nodiscard]] Bytes bytes() const { return bytes_; }

 private:
  static constexpr Bytes kFree = -1;
  struct Event {
    Bytes bytes = 0;  ///< of the malloc, or kFree
    Bytes offset = 0;
  };

  void advance() {
    if (++position_ == events_.size()) position_ = 0;
  }

  std::vector<Event> events_;  ///< never empty
  std::size_t position_ = 0;
  std::vector<Block> live_at_start_;
  Bytes bytes_ = 0;
};

inline PlannedPool::PlannedPool(std::span<const CyclicLifetime> lives,
                                std::span<const Bytes> offsets, std::int32_t cycle) {
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

/// The lifetimes to pack for a PlannedPool, in a cycle of two iterations: blocks that outlive their
/// successor's malloc alternate between two addresses. Nothing when a block lives through whole
/// iterations, so that nobody knows where it ends.
inline std::optional<std::vector<CyclicLifetime>> lifetimes_to_serve(
    const Recording& recording, const Iteration& iteration, const BlockLives& block_lives) {
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
