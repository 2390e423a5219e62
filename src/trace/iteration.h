// Iteration detection: where in a recording one training iteration begins and how long it is, from
// the events alone (SmartPool/AutoSwap, section V: "once two consecutive subsequences are detected
// to be repeating").
//
// Note [Detection]. Events are compared as tokens, not by address: a malloc is its size, any other
// event is its kind and the distance to the previous event on the same block; op names count where
// they are recorded. A block's first event, when that is no malloc, has no such distance: it equals
// any event of its kind.
//
// A period p holds on a stretch when every event of it equals the one p later. The periods that
// hold on the last 2p events are the borders of the reversed tokens, found in linear time by the
// Z function. Short ones among them are often accidents of the end (two equal layers, two rounds of
// accumulation): a period is believed only if it holds as far back as the two repetitions of every
// longer candidate. (If it does not, it cannot explain that candidate; if it does, the candidate is
// a multiple.) A period must leave the live bytes unchanged and contain a malloc, unless one of
// accesses alone is asked for. Recordings may
// end in something else than training, so the search is repeated without the last quarter and
// half; what holds on most events wins.
#pragma once

#include <optional>

#include "trace/recording.h"

namespace tidepool {

/// Events [start, start + period) are one iteration; it repeats in full `repeats` >= 2 times from
/// `start` on.
struct Iteration {
  std::int64_t start = 0;   ///< a malloc, if it has one; the events before it are warm-up
  std::int64_t period = 0;  ///< events
  std::int64_t repeats = 0;
};

/// The smallest period that repeats in full twice, in time linear in the events; nothing when there
/// is none. `recording` must be valid (see Recording).
std::optional<Iteration> find_iteration(const Recording& recording);

/// The same of accesses alone, of blocks that are there before and after.
std::optional<Iteration> find_iteration_of_accesses(const Recording& recording);

}  // namespace tidepool
