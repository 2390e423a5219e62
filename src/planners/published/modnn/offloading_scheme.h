// moDNN's offloading schemes: which blocks leave when an allocation fails.
//
// Source: section 5.2.1 of the paper (see memory_manager.h), "Finding an Offloading Scheme".
//
// Note [Offloading scheme]. Each segment in turn is taken as the first; those at higher addresses
// follow until the space is enough. One that may not leave ends the try. Of all schemes the one
// with the least delay is taken, then the one that copies the fewest bytes, then the one at the
// lowest address. A scheme may begin and go on with free segments: they are space as well.
// The delay is how much later than wanted the last byte is free: copies out are made one after the
// other when the data stream is free, each not before its block is there (Fig. 3 of the paper: a
// block may begin to leave long before its space is wanted). A block whose value the host has
// already, or that holds none, is only freed.
#pragma once

#include <functional>
#include <optional>

#include "planners/published/modnn/memory_manager.h"

namespace tidepool::modnn {

/// What it takes for a block to leave.
struct Leaving {
  bool may = false;
  Nanos last_use{};   ///< end of the last task that uses it
  Nanos ready{};      ///< when its value is there to be copied
  Nanos copy_time{};  ///< 0: it is only freed
  Bytes copied = 0;   ///< 0: it is only freed
};

struct OffloadingScheme {
  SegmentId first = kNone;
  SegmentId last = kNone;
  Nanos free_from{};  ///< when all of it is
  Bytes copied = 0;
};

struct SpaceWanted {
  Bytes bytes = 0;
  Nanos from{};         ///< when it is wanted
  Nanos stream_free{};  ///< when the stream of copies out is
};

/// `leaving` is asked once for each segment that is taken. Nothing: there is no valid scheme.
std::optional<OffloadingScheme> find_offloading_scheme(
    const MemoryManager& memory, const SpaceWanted& wanted,
    const std::function<Leaving(std::int32_t owner)>& leaving);

}  // namespace tidepool::modnn
