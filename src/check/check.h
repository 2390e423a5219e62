// check: proves that a plan computes what its program says, inside its budget, at any speed. Reads
// only the program and the plan and shares no code with what made the plan (DESIGN.md section 3).
#pragma once

#include "schedule/schedule.h"

namespace tidepool {

struct CheckLimits {
  Bytes device = 0;
  Bytes host = 0;       ///< 0: no limit
  Bytes alignment = 1;  ///< of the machine: the plan's is a multiple of it
  bool duplex = true;   ///< of the machine: its link carries both directions at the same time
};

/// Proves, for entry, steady state and exit:
///  (0) every wait points backwards in issue order; no resource is used twice at a time: device ops
///      are on one stream, and so are the copies of each direction (of both, if not duplex);
///  (1) all byte ranges lie inside the arenas, and the arenas inside the limits; addresses have the
///      machine's alignment; streams and spaces are of the one device there is, 0, or of the host;
///  (2) any two accesses to overlapping bytes, one of them a write, are ordered by happens-before
///      (vector clocks over two consecutive iterations);
///  (3) every op reads the values the original program gives it;
///  (4) the steady state carries every persistent tensor from where the iteration began to the same
///      place with its next value; entry establishes the first, exit hands out the last;
///  (5) every state update and every host op happens exactly once an iteration, and each host op
///      happens-before the next one of the program, the last one before the first of the next
///      iteration: what runs host ops may keep state that no tensor holds (a sum of losses, a place
///      in the data).
/// Fails with ErrorCode::check_failed and a counterexample that starts with the clause's number.
/// A guarded op counts as run: nothing but ops of its guard can tell whether it did (see
/// Note [Guards] in ir/program.h), and a skipped instruction touches no byte and keeps its order.
Result<void> check(const Program& program, const Plan& plan, const CheckLimits& limits);

}  // namespace tidepool
