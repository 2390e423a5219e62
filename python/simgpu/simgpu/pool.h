/// Gives out device addresses as a caching allocator does: freed blocks serve their own stream at
/// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "races.h"

namespace sim {

/// One recording of an event: what was asked of its stream until then.
struct Version {
  Clock clock;
  int64_t time = 0;  // virtual nanoseconds
  bool done = false;
};
using Recorded = std::shared_ptr<Version>;

constexpr size_t kRegion = size_t(1) << 36;

/// Blocks of multiples of kGrain in segments, each of one stream; best fit, split, joined. Not
/// locked.
class Pool {
 public:
  /// Maps the addresses that are given out, which fault, and the bytes behind them.
  Pool();

  bool has(uintptr_t at) const { return at >= base_ && at < base_ + kRegion; }
  /// Returns where the bytes of a device address are: following the address itself faults.
  static void* real(const void* at);

  /// Returns a free block of the stream's, or 0.
  uintptr_t take(size_t asked, int stream);
  /// Adds a segment that has room for so much.
  void grow(size_t asked, int stream);
  size_t segment_for(size_t asked) const;
  void free(uintptr_t at);
  /// Keeps a block that is freed until `streams` have come so far.
  void free_behind(uintptr_t at, std::vector<Recorded> streams);
  /// Says that a block is used on another stream than its own.
  void note_use(uintptr_t at, int stream);
  std::set<int> other_streams_of(uintptr_t at) const;
  /// Frees what was kept and need not be any more; what the host has learnt by that.
  void reclaim(Clock& host);
  void release_segments();
  /// Says whether a range lies in one block that somebody holds.
  bool is_alive(const Range& range) const;

  /// Whether parts of a segment are released, as CUDA's expandable segments are.
  bool expandable = false;
  size_t cap = kRegion, segment = 64 << 10;
  size_t allocated = 0, peak = 0, reserved = 0, peak_reserved = 0, allocations = 0;

 private:
  struct Block {
    size_t size;
    int stream;
    bool free;
    uintptr_t segment;
    std::set<int> used_by;
  };
  struct Free {
    int stream;
    size_t size;
    uintptr_t at;
    bool operator<(const Free& other) const;
  };
  struct Kept {
    uintptr_t at;
    std::vector<Recorded> streams;
  };
  using Blocks = std::map<uintptr_t, Block>;

  void give_back(uintptr_t at);
  static bool touch(const Blocks::value_type& one, const Blocks::value_type& next);
  void set_free(uintptr_t at, const Block& block) { free_.insert({block.stream, block.size, at}); }
  void not_free(uintptr_t at, const Block& block) { free_.erase({block.stream, block.size, at}); }

  uintptr_t base_, end_;
  Blocks blocks_;
  std::set<Free> free_;
  std::vector<Kept> kept_;
};

}  // namespace sim
