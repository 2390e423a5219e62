// Block lives: what one iteration sees of each block. A block that outlives the iteration appears
// twice: as the life that begins in it, and (of the block one iteration older) as the life that
// ends in it.
#pragma once

#include <span>
#include <vector>

#include "base/id.h"
#include "trace/iteration.h"

namespace tidepool {

using BlockLifeId = Id<struct BlockLifeTag>;

/// Positions are events of the iteration, counted from 0.
struct BlockLife {
  BlockId block = kNone;
  std::int32_t malloc_at = kNone;     ///< kNone: there when the iteration begins
  std::int32_t free_at = kNone;       ///< kNone: there when it ends
  std::int32_t first_access = kNone;  ///< kNone: not accessed in this iteration
  std::int32_t last_access = kNone;
  /// Of a life that begins and does not end: the life of the same list that is its second part, in
  /// the next iteration. kNone: not known (the block lives through whole iterations).
  BlockLifeId rest = kNone;
};

struct BlockLives {
  std::vector<BlockLife> all;
  std::vector<BlockLifeId> of_event;  ///< per event of the iteration
  /// Bytes there all the time and not accessed in the iteration, with those of the recording.
  Bytes resident = 0;
  /// The largest number of live bytes at any event of the iteration, resident ones included.
  Bytes peak = 0;
};

/// `iteration` must have been found in `recording`.
BlockLives find_block_lives(const Recording& recording, const Iteration& iteration);

/// Bytes and when they are taken, in a cycle of whole iterations: events [begin, end); beyond the
/// cycle's last event they are those of the next cycle.
struct CyclicLifetime {
  Bytes bytes = 0;
  std::int32_t begin = 0;
  std::int32_t end = 0;  ///< end - begin is at most the cycle; equal: always taken
};

/// The recorded mallocs and frees as lifetimes in a cycle of one iteration. A block that is still
/// there when its successor is allocated has to move when it is alone again: it is one lifetime
/// that is always there, and another one for the time in which there are two (the same as in
/// trace_program.h, Note [Trace boundary]). SmartPool's published ratio counts like this.
std::vector<CyclicLifetime> cyclic_lifetimes(const Recording& recording, const Iteration& iteration,
                                             const BlockLives& block_lives);

/// The same in a cycle of two iterations: such blocks alternate between two addresses, nothing
/// moves.
std::vector<CyclicLifetime> lifetimes_of_two_iterations(const Recording& recording,
                                                        const Iteration& iteration,
                                                        const BlockLives& block_lives);

/// Sizes of the blocks that move in each iteration where cyclic_lifetimes gives them places.
std::vector<Bytes> moved_blocks(const Recording& recording, const BlockLives& block_lives);

/// Whether two lifetimes of a cycle of `cycle` events share a moment.
bool overlap(const CyclicLifetime& a, const CyclicLifetime& b, std::int32_t cycle);

}  // namespace tidepool
