// Expansion: what runs and what moves for a strategy, as data; made by expand.
#pragma once

#include <vector>

#include "base/id.h"
#include "base/space.h"
#include "ir/access_index.h"

namespace tidepool {

using CallId = Id<struct CallTag>;
using LifeId = Id<struct LifeTag>;
using MoveId = Id<struct MoveTag>;

/// One run of an op.
struct Call {
  OpId op = kNone;
  bool clone = false;              ///< recomputation
  std::int32_t first_operand = 0;  ///< into Expansion::operands, one per access of the op
};

/// A transfer of one tensor between the device and where it is away; a swap is two moves.
struct Move {
  TensorId tensor = kNone;
  bool out = false;   ///< off the device
  GapId gap = kNone;  ///< the gap it belongs to; kNone: a copy for recomputation only
  CallId call = 0;    ///< out: issued after this call; in: needed before this call
  /// in: not issued before this call, of the previous iteration where `trigger_previous`.
  CallId trigger = kNone;
  bool trigger_previous = false;
  bool early = false;  ///< in: may start before the trigger could, though it is not issued before
  /// in: this call must be over, of the previous iteration where `after_previous`.
  CallId after = kNone;
  bool after_previous = false;
  /// out: this call waits for it, that of the next iteration where `barrier_next`.
  CallId barrier = kNone;
  bool barrier_next = false;
  /// in: the move that filled the bytes away; kNone when a host op or entry did.
  MoveId source = kNone;
  bool source_previous = false;  ///< ... of the previous iteration
  CallId source_call = kNone;    ///< in: the last host op of this iteration that used the bytes
  LifeId device = kNone;
  LifeId host = kNone;
};

/// A host call that must wait for a copy in: both use the same bytes, and the call may change them,
/// or is the last that holds them.
struct HostTurn {
  CallId call = 0;
  MoveId in = kNone;
};

/// A stay of a tensor at one place of one space. Begins with the call or the move
/// that first writes it and ends with the last call or move that uses it.
struct Life {
  TensorId tensor = kNone;
  SpaceId space = 0;
  bool always = false;        ///< through every iteration
  bool crosses = false;       ///< began in the iteration before the one it ends in
  CallId begin_call = kNone;  ///< exactly one of begin_call and begin_move, unless always
  MoveId begin_move = kNone;
  CallId last_call = kNone;  ///< last call that uses it, kNone when only moves do
  MoveId end_move = kNone;   ///< last move that uses it
  Bytes fixed_offset = -1;   ///< where the strategy wants it, or -1
};

/// Reused between strategies: `expand` clears it and keeps its memory.
struct Expansion {
  std::vector<Call> calls;
  std::vector<Move> moves;           ///< outs in the order of their calls, and so are ins
  std::vector<MoveId> outs;          ///< in issue order
  std::vector<MoveId> ins;           ///< in the order of their calls
  std::vector<HostTurn> host_turns;  ///< in the order of their calls
  std::vector<Life> lives;
  std::vector<LifeId> operands;  ///< see Call::first_operand
  std::vector<LifeId> boundary;  ///< per tensor: where a persistent value lies in between
  std::int32_t clones = 0;
};

// Where nothing is recomputed, and where a tensor is expanded alone, the calls are the ops.
constexpr CallId call_of(OpId op) { return op.value(); }
constexpr OpId op_of(CallId call) { return call.value(); }

}  // namespace tidepool
