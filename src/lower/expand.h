// expand: Program x Strategy -> what runs and what moves, in order, without times. The first pass
// of `lower`, and the input of the timing engine.
//
// Note [Expansion]. The program is walked in order with the state of every tensor: which version
// is on the device, which away from it: on the host, or in a file. Before an op runs, each value it
// reads is brought to where it runs: by a copy of a version the other side holds, or by running its
// producer again (a clone). A clone's own inputs are brought the same way, so chains, shared
// ancestors and ancestors that were swapped out follow without special cases. A value made only for
// clones is a temporary: it lives to the last clone that reads it. A value whose own gap is open
// (its tensor is needed again later) stays until that access. Outputs of a clone nobody waits for
// get temporary bytes.
#pragma once

#include <string>
#include <vector>

#include "lower/expanding/hints.h"
#include "lower/expansion.h"
#include "schedule/strategy.h"

namespace tidepool {

/// Why no plan of one device can be made for the program, whatever the budget and the planner;
/// empty where there is no such reason. Names the op or the tensor.
std::string why_unplannable(const Program& program);

/// Expands strategies of one program.
class Expander {
 public:
  /// Both must outlive the expander. Device ops run on device 0; what leaves it goes, per tensor,
  /// to a space of `away` (see away_spaces.h), or else to the host, which is space 1.
  Expander(const Program& program, const AccessIndex& index, std::vector<SpaceId> away = {});

  /// Empty when `strategy` can be expanded; otherwise why not, naming op and tensor: a drop without
  /// a valid host copy, a recomputation of an op that must not run twice or from an old version of
  /// persistent state. Allocates nothing once its memory has grown.
  std::string expand(const Strategy& strategy, Expansion& out);

  /// One tensor's lives and moves, where nothing is recomputed and there are no hints: the same as
  /// those `expand` would make, with ops for calls. They have no part in those of other tensors.
  /// `out` has no calls; its operands are the tensor's lives at its accesses, in their order. False
  /// where `expand` may refuse.
  bool expand_tensor(const Strategy& strategy, TensorId tensor, Expansion& out);
  /// Strategies of swaps and drops can be expanded tensor by tensor.
  [[nodiscard]] bool tensors_are_independent() const {
    return unsupported_.empty() && !program_.single_placements;
  }

 private:
  struct State {
    LifeId device = kNone;
    std::int32_t device_version = kNone;
    LifeId host = kNone;
    std::int32_t host_version = kNone;
    MoveId host_source = kNone;       ///< what filled the host bytes in this iteration
    CallId host_source_call = kNone;  ///< the last host op that used them or kept them taken
    MoveId host_reader = kNone;       ///< the last copy in, of these host bytes or of earlier ones
    GapId open_gap = kNone;           ///< the gap the tensor is in
    LifeId first = kNone;             ///< its life when the iteration starts (persistent)
    bool at_start = false;  ///< not accessed yet: the open gap began in the previous iteration
    LifeId held = kNone;    ///< stays taken after its last access
  };
  struct Temporary {
    TensorId tensor = kNone;
    std::int32_t version = kNone;
    LifeId life = kNone;
  };

  void begin(const Strategy& strategy, Expansion& out);
  void forget_all_tensors();
  void start_iteration(TensorId tensor);
  bool run_op(OpId op);
  LifeId bring_operand(OpId op, std::size_t k);
  void use_operand(OpId op, std::size_t k, LifeId operand, CallId call);
  bool leave_operand(OpId op, std::size_t k, CallId call);
  void use_host_bytes(TensorId tensor, CallId call);
  void release(TensorId tensor, CallId call);
  void end_last_life(TensorId tensor, OpPlace place);
  bool begin_gap(GapId gap, CallId call);
  void copy_out(GapId gap, CallId call);
  bool follow_hints(OpId before);
  void finish(TensorId tensor);
  void find_previous_sources();
  LifeId bring_to_device(TensorId tensor, std::int32_t version);
  LifeId bring_to_host(TensorId tensor, std::int32_t version);
  LifeId fresh_copy(TensorId tensor, std::int32_t version);
  LifeId copy_in(TensorId tensor, bool stays);
  LifeId recompute(TensorId tensor, std::int32_t version);
  LifeId lasting_life(TensorId tensor);
  void keep_output(TensorId tensor, std::int32_t version, LifeId life);
  LifeId new_life(TensorId tensor, SpaceId space);
  bool may_have_another_place(TensorId tensor);
  void use(LifeId life, CallId call);
  [[nodiscard]] bool awaits(TensorId tensor, std::int32_t version) const;
  [[nodiscard]] bool is_last_life(TensorId tensor) const;
  LifeId refuse(std::string why);
  [[nodiscard]] CallId next_call() const {
    return alone_at_ != kNone ? call_of(alone_at_) : static_cast<CallId>(out_->calls.size());
  }

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
  std::vector<std::vector<TensorId>> released_by_;  ///< per op; empty where nothing stays taken
  std::vector<SpaceId> away_;                       ///< per tensor
  Hints hints_;
  std::string unsupported_;  ///< see why_unplannable

  // Per strategy: `begin` empties all of it, since the strategy before may have been refused
  // midway.
  const Strategy* strategy_ = nullptr;
  Expansion* out_ = nullptr;
  std::vector<State> state_;
  std::vector<Temporary> temporaries_;
  std::vector<LifeId> operand_stack_;
  std::vector<CallId> op_call_;  ///< per op so far: its call
  OpId alone_at_ = kNone;        ///< of expand_tensor: the op it is at
  std::string why_not_;
};

}  // namespace tidepool
