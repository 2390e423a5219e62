// Stays: what one iteration sees of each block. A block that outlives the iteration appears twice:
// as the stay that begins in it, and (of the block one iteration older) as the stay that ends in
// it.
#pragma once

#include <span>
#include <vector>

#include "trace/iteration.h"

namespace tidepool {

using StayId = std::int32_t;

/// Positions are events of the iteration, counted from 0.
struct Stay {
  BlockId block = kNone;
  std::int32_t malloc_at = kNone;     ///< kNone: there when the iteration begins
  std::int32_t free_at = kNone;       ///< kNone: there when it ends
  std::int32_t first_access = kNone;  ///< kNone: not accessed in this iteration
  std::int32_t last_access = kNone;
  /// Of a stay that begins and does not end: the stay of the same list that is its second part, in
  /// the next iteration. kNone: not known (the block lives through whole iterations).
  StayId rest = kNone;
};

struct Stays {
  std::vector<Stay> all;
  std::vector<StayId> of_event;  ///< per event of the iteration
  /// Bytes there all the time and not accessed in the iteration, with those of the recording.
  Bytes resident = 0;
  /// The largest number of live bytes at any event of the iteration, resident ones included.
  Bytes peak = 0;
};

/// `iteration` must have been found in `recording`.
Stays find_stays(const Recording& recording, const Iteration& iteration);

/// Bytes and when an iteration needs them, from the recorded mallocs and frees: events
/// [begin, end), beyond `period` in the next iteration. A block that outlives its own successor is
/// a lifetime that is always there and another one for the time in which there are two of it.
struct Lifetime {
  Bytes bytes = 0;
  std::int32_t begin = 0;
  std::int32_t end = 0;  ///< end - begin <= period; equal: always there
};
std::vector<Lifetime> cyclic_lifetimes(const Recording& recording, const Iteration& iteration,
                                       const Stays& stays);

/// Whether two lifetimes of a cycle of `period` events share a moment.
bool overlap(const Lifetime& a, const Lifetime& b, std::int32_t period);

}  // namespace tidepool
