// check: proves that a plan computes what its program says, inside its budget, at any speed. Reads
// only the program and the plan and shares no code with what made the plan (DESIGN.md section 3).
#pragma once

#include "schedule/schedule.h"

namespace tidepool {

/// What a plan is proved against: the budget of each space, and what the machine has.
struct CheckLimits {
  struct Space {
    SpaceKind kind = SpaceKind::device;
    Bytes bytes = 0;      ///< the budget
    Bytes alignment = 1;  ///< of the machine: the plan's is a multiple of it
  };
  /// Copies are made from `from` to `to`; those of one channel take turns.
  struct Link {
    SpaceId from = 0;
    SpaceId to = 0;
    std::int32_t channel = 0;
  };
  std::vector<Space> spaces;  ///< by SpaceId
  std::vector<Link> links;

  CheckLimits() = default;
  /// One device and its host. `host` 0: no limit. `duplex`: the link carries both directions at the
  /// same time.
  explicit(false)  // NOLINTNEXTLINE(google-explicit-constructor): that is what it says
      CheckLimits(Bytes device, Bytes host = 0, Bytes alignment = 1, bool duplex = true);
};

/// Proves, for entry, steady state and exit:
///  (0) every wait points backwards in issue order; no resource is used twice at a time: the ops of
///      a device are on one stream, which is that device's, and so are the copies of each channel;
///      copies between two spaces have a link there;
///  (1) all byte ranges lie inside the arenas, and the arenas inside the limits; addresses have the
///      machine's alignment; the arenas are those of the machine's spaces; bytes of files are only
///      copied, and such copies are of whole blocks (as long as the file's alignment) at both ends,
///      in all clauses;
///  (2) any two accesses to overlapping bytes, one of them a write, are ordered by happens-before
///      (vector clocks over two consecutive iterations);
///  (3) every op reads the values the original program gives it;
///  (4) the steady state carries every persistent tensor from where the iteration began to the same
///      place, or places, with its next value; entry establishes the first, exit hands out the
///      last;
///  (5) every state update and every host op happens exactly once an iteration, and each host op
///      happens-before the next one of the program, the last one before the first of the next
///      iteration: what runs host ops may keep state that no tensor holds (a sum of losses, a place
///      in the data);
///  (6) pinned tensors lie at one place and are never copied; what stays taken until a later op
///      holds its value until that op (Tensor::released_at), and nothing else is written to the
///      bytes of either meanwhile; in programs with single placements a tensor gets another place
///      on a device only by being written there, and all uses of the one it had happen before;
///  (7) tensors whose home is the device lie, between iterations, on each device whose ops access
///      them, where the last op of an iteration leaves them and the first one of the next finds
///      them, and nothing is written to those bytes in between (Note [Home] in ir/program.h).
/// Fails with ErrorCode::check_failed and a counterexample that starts with the clause's number.
/// A guarded op counts as run: nothing but ops of its guard can tell whether it did (see
/// Note [Guards] in ir/program.h), and a skipped instruction touches no byte and keeps its order.
Result<void> check(const Program& program, const Plan& plan, const CheckLimits& limits);

}  // namespace tidepool
