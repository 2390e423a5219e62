// How late copies to the device may start without anything waiting for them.
//
// A copy-in takes its bytes from the moment it starts. The time pass issues it early where memory
// allows, but what is issued early need not start early: another placement may have the bytes until
// the latest start, and the wait this takes costs no time.
#pragma once

#include <vector>

#include "lower/evaluate.h"

namespace tidepool {

/// Per step the latest start at which no op starts later than it does in the steady state of
/// `steps`, whose iteration takes `iteration_time`. Of ops and copies out: their start. Relative to
/// the start of the iteration in whose list the step is.
std::vector<Nanos> latest_starts(std::span<const Step> steps, Nanos iteration_time);

/// Moves every copy-in towards the end of the list, up to the first op that is not over at its
/// latest start: it can then wait for all ops before that one. What waits for it stays behind it,
/// streams keep their order. `latest` (of `latest_starts`) is reordered with the steps.
void list_copies_in_late(std::vector<Step>& steps, std::vector<Nanos>& latest);

}  // namespace tidepool
