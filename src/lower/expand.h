// expand: Program x Strategy -> what runs and what moves, in order, without times. The first pass
// of `lower`, and the input of the timing engine.
//
// Note [Expansion]. The program is walked in order with the state of every tensor: which version
// is on the device, which on the host. Before an op runs, each value it reads is brought to where
// it runs: by a copy of a version the other side holds, or by running its producer again (a
// clone). A clone's own inputs are brought the same way, so chains, shared ancestors and ancestors
// that were swapped out follow without special cases. A value made only for clones is a temporary:
// it lives to the last clone that reads it. A value whose own gap is open (its tensor is needed
// again later) stays until that access. Outputs of a clone nobody waits for get temporary bytes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "schedule/strategy.h"

namespace tidepool {

using CallId = std::int32_t;
using LifeId = std::int32_t;
using MoveId = std::int32_t;

/// One run of an op.
struct Call {
  OpId op = kNone;
  bool clone = false;              ///< recomputation
  std::int32_t first_operand = 0;  ///< into Expansion::operands, one per access of the op
};

/// A transfer of one tensor between device and host; a swap is two moves.
struct Move {
  TensorId tensor = kNone;
  bool out = false;   ///< to the host
  GapId gap = kNone;  ///< the gap it belongs to; kNone: a copy for recomputation only
  CallId call = 0;    ///< out: issued after this call; in: needed before this call
  /// in: not issued before this call, of the previous iteration where `trigger_previous`.
  CallId trigger = kNone;
  bool trigger_previous = false;
  /// out: this call waits for it, that of the next iteration where `barrier_next`.
  CallId barrier = kNone;
  bool barrier_next = false;
  /// in: the move that filled the host bytes; kNone when a host op or entry did.
  MoveId source = kNone;
  bool source_previous = false;  ///< ... of the previous iteration
  CallId source_call = kNone;    ///< in: the last host op of this iteration that used the bytes
  LifeId device = kNone;
  LifeId host = kNone;
};

/// A stay of a tensor at one place of the device or of the host. Begins with the call or the move
/// that first writes it and ends with the last call or move that uses it.
struct Life {
  TensorId tensor = kNone;
  bool on_host = false;
  bool always = false;        ///< through every iteration
  bool crosses = false;       ///< began in the iteration before the one it ends in
  CallId begin_call = kNone;  ///< exactly one of begin_call and begin_move, unless always
  MoveId begin_move = kNone;
  CallId last_call = kNone;  ///< last call that uses it, kNone when only moves do
  MoveId end_move = kNone;   ///< last move that uses it
  Bytes fixed_offset = -1;   ///< on the device: where the strategy wants it, or -1
};

/// Reused between strategies: `expand` clears it and keeps its memory.
struct Expansion {
  std::vector<Call> calls;
  std::vector<Move> moves;   ///< outs in the order of their calls, and so are ins
  std::vector<MoveId> outs;  ///< in issue order
  std::vector<MoveId> ins;   ///< in the order of their calls
  std::vector<Life> lives;
  std::vector<LifeId> operands;  ///< see Call::first_operand
  std::vector<LifeId> boundary;  ///< per tensor: where a persistent value lies in between
  std::int32_t clones = 0;
};

/// Expands strategies of one program.
class Expander {
 public:
  /// Both must outlive the expander.
  Expander(const Program& program, const AccessIndex& index);

  /// Empty when `strategy` can be expanded; otherwise why not, naming op and tensor: a drop without
  /// a valid host copy, a recomputation of an op that must not run twice or from an old version of
  /// persistent state. Allocates nothing once its memory has grown.
  std::string expand(const Strategy& strategy, Expansion& out);

 private:
  struct State {
    LifeId device = kNone;
    std::int32_t device_version = kNone;
    LifeId host = kNone;
    std::int32_t host_version = kNone;
    MoveId host_source = kNone;  ///< what filled the host bytes in this iteration
    CallId host_source_call = kNone;
    GapId open_gap = kNone;  ///< the gap the tensor is in
    LifeId first = kNone;    ///< its life when the iteration starts (persistent)
    bool at_start = false;   ///< not accessed yet: the open gap began in the previous iteration
  };
  struct Temporary {
    TensorId tensor = kNone;
    std::int32_t version = kNone;
    LifeId life = kNone;
  };

  void begin(const Strategy& strategy, Expansion& out);
  void start_iteration();
  bool run_op(OpId op);
  bool begin_gap(GapId gap, CallId call);
  void copy_out(GapId gap, CallId call);
  bool read_hints();
  bool check_hint(const CopyHint& hint);
  bool follow_hints(OpId before);
  void resolve_hints();
  [[nodiscard]] const CopyHint* hint_of(GapId gap) const;
  void finish();
  LifeId bring_to_device(TensorId tensor, std::int32_t version);
  LifeId bring_to_host(TensorId tensor, std::int32_t version);
  LifeId fresh_copy(TensorId tensor, std::int32_t version);
  LifeId copy_in(TensorId tensor, bool stays);
  LifeId recompute(TensorId tensor, std::int32_t version);
  LifeId life_for_stay(TensorId tensor);
  void keep_output(TensorId tensor, std::int32_t version, LifeId life);
  LifeId new_life(TensorId tensor, bool on_host);
  void use(LifeId life, CallId call);
  [[nodiscard]] bool awaits(TensorId tensor, std::int32_t version) const;
  [[nodiscard]] bool is_last_stay(TensorId tensor) const;
  LifeId refuse(std::string why);

  Life& life(LifeId id) { return out_->lives[static_cast<std::size_t>(id)]; }
  State& state(TensorId t) { return state_[static_cast<std::size_t>(t)]; }
  [[nodiscard]] Decision decision(GapId gap) const;

  const Program& program_;
  const AccessIndex& index_;
  std::vector<std::int32_t> access_start_;     ///< per op: its first entry in the next three
  std::vector<std::int32_t> version_read_;     ///< per operand
  std::vector<std::int32_t> version_written_;  ///< per operand
  std::vector<GapId> gap_after_;               ///< per operand: the gap its access begins, or kNone
  std::vector<std::int32_t> producer_start_;   ///< per tensor: the producer of version 1
  std::vector<OpId> producers_;
  TensorId persistent_on_host_ = kNone;  ///< a persistent tensor some host op touches

  struct Due {
    OpId before = kNone;
    GapId gap = kNone;
    bool in = false;  ///< copy in (barrier), otherwise copy out (trigger)
  };

  // Per strategy: `begin` empties all of it, since the strategy before may have been refused
  // midway.
  const Strategy* strategy_ = nullptr;
  Expansion* out_ = nullptr;
  std::vector<State> state_;
  std::vector<Temporary> temporaries_;
  std::vector<LifeId> operand_stack_;
  std::vector<std::int32_t> hint_of_gap_;  ///< empty without hints
  std::vector<Due> due_;  ///< what hints ask right before an op, in the order of ops
  std::size_t next_due_ = 0;
  std::vector<CallId> op_call_;  ///< per op so far: its call
  std::string why_not_;
};

}  // namespace tidepool
