// evaluate: the one timing engine. Turns a Strategy into the order of ops and copies, the waits
// between them and the times that follow, under a limit on the device memory load. Planners score
// strategies with it, `lower` takes its timeline as the schedule.
//
// Note [Time pass]. Ops run in program order. Copy-outs are issued when their gap begins, in the
// order of last access. Copy-ins are issued in the order of their deadlines (the op that needs
// them), as early in the list as the predicted load allows up to the deadline, and at the deadline
// at the latest. Memory is never assumed: whoever allocates (an op its outputs and workspace, a
// copy-in its tensor) waits for as much of the compute stream (ops up to k) and of the copy-out
// stream (copies up to j) as must be over for the load to stay within the limit; (k, j) is chosen
// for the earliest start. Those waits are instructions of the schedule like any other, so the
// simulator and the devices stall exactly where this engine does. A strategy may fix where a copy
// is issued and which op waits for it (CopyHint); memory is waited for all the same.
//
// Note [Cyclic time]. One list is issued every iteration. The pass is made twice: the second time
// the end of the first stands for the previous iteration (copies in flight across the boundary,
// load at its tail). A final replay of the list with its waits gives the long run.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "cost/machine.h"
#include "lower/expand.h"
#include "schedule/schedule.h"

namespace tidepool {

/// The streams that plans for the first device use: of its ops, of each direction of its link with
/// the host, and of host ops.
struct StreamTable {
  StreamId compute = 0;
  StreamId out = 1;
  StreamId in = 2;  ///< equal to `out` on machines that are not duplex
  StreamId host = 3;
  std::vector<Stream> streams;
  static StreamTable of(const Machine& machine);
};

inline constexpr int kMaxStreams = 4;

enum class StepKind : std::uint8_t { op, copy_out, copy_in };

struct StepWait {
  std::int32_t index = kNone;  ///< position in the list; kNone: no wait on that stream
  std::int32_t iteration = 0;  ///< 0 or -1
};

/// One future instruction: a call of the expansion, or one of its moves.
struct Step {
  StepKind kind = StepKind::op;
  StreamId stream = 0;
  std::int32_t id = kNone;  ///< call, or move
  std::array<StepWait, kMaxStreams> waits;
  Nanos duration{};
  Nanos start{};  ///< in the steady state, relative to the start of the iteration's compute
  Nanos end{};
};

/// Runs the list of steps iteration after iteration from idle streams until what follows is known
/// for ever, and gives each step its start and end in the last one. Returns the long-run mean of
/// the time of one iteration of the compute stream, rounded: where two iterations agree, what each
/// of them takes. See Note [Long run] in replay.cpp. `scratch` avoids allocation between calls.
struct ReplayScratch {
  std::vector<Nanos> current_end;
  std::vector<Nanos> previous_end;
};
Nanos replay(std::span<Step> steps, StreamId compute, ReplayScratch& scratch);

struct Evaluation {
  bool feasible = false;   ///< false also where it gave up
  OpId stuck = kNone;      ///< infeasible: the op whose memory cannot be had
  std::string refused;     ///< infeasible: why the strategy cannot be expanded, if that is why
  Nanos iteration_time{};  ///< steady state
  Nanos compute_time{};    ///< sum of the device calls' times, recomputation included
  Nanos copy_time{};       ///< sum of the copies' times, both directions
  Bytes peak_load = 0;     ///< largest load at any op
  [[nodiscard]] Nanos stall() const { return iteration_time - compute_time; }
};

struct EvaluateOptions {
  Bytes load_limit = 0;
  bool prefetch = true;  ///< false: every copy-in right before its op (streaming)
  /// How much earlier than needed a copy-in may start, up to one op more: needed for its op, and
  /// for the copies-in behind it to be in time. A short lead leaves memory to others for longer, a
  /// long one forgives late copies. Not for copies with a trigger.
  Nanos lead = Nanos::max();
  /// An iteration that takes longer is of no use: the evaluation may end early, as infeasible.
  /// Judged while the list is made, where a stall can look longer than it is in the steady state.
  Nanos give_up_above = Nanos::max();
};

class Evaluator {
 public:
  /// `program` and `index` must outlive the evaluator.
  Evaluator(const Program& program, const AccessIndex& index, const Machine& machine);

  /// Not thread-safe; allocates nothing once its memory has grown.
  Evaluation evaluate(const Strategy& strategy, const EvaluateOptions& options);

  /// The list of the last feasible evaluation, with steady-state times.
  [[nodiscard]] std::span<Step> steps() { return steps_; }
  [[nodiscard]] const Expansion& expansion() const { return x_; }
  [[nodiscard]] const StreamTable& streams() const { return table_; }
  /// Load at each call of the last evaluation.
  [[nodiscard]] std::span<const Bytes> load() const { return load_; }

 private:
  // Iterations are addressed by extended indices: call q of the previous iteration is q, of the
  // current one q + calls_; copy-outs likewise.
  struct Choice {
    std::int32_t call = 0;  ///< extended: calls up to this one must be over
    std::int32_t out = 0;   ///< extended: copy-outs up to this one must be over
    Nanos start{};
    bool found = false;
  };

  void prepare(const Strategy& strategy);
  void prepare_life(const Life& life);
  void add_load(CallId from, CallId to, Bytes bytes);
  void predict_unstalled();
  void predict_in_flight();
  void predict_latest_starts();
  bool pass(const EvaluateOptions& options, Nanos compute_time, OpId& stuck);
  bool issue_copies_in(CallId call, const EvaluateOptions& options);
  bool issue_triggered_copies_in(CallId call, Bytes limit);
  [[nodiscard]] bool room_until_deadline(CallId from, CallId deadline, Bytes bytes,
                                         Bytes limit) const;
  [[nodiscard]] Choice earliest(MoveId move, CallId at, Bytes limit, Nanos not_before) const;
  void issue_copy_in(MoveId move, const Choice& choice);
  void reserve(MoveId move, Bytes bytes);
  [[nodiscard]] CallId last_call_of(const Life& target) const {
    return target.crosses ? calls_ - 1 : end_of(target);
  }
  bool issue_device_call(CallId call, Bytes limit);
  void issue_host_call(CallId call);
  void issue_copies_out(CallId call);
  void close_pass();
  void resolve_waits();

  [[nodiscard]] const Move& move(MoveId id) const { return x_.moves[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const Life& life(LifeId id) const { return x_.lives[static_cast<std::size_t>(id)]; }
  [[nodiscard]] Bytes bytes_of(MoveId id) const {
    return tensor_bytes_[static_cast<std::size_t>(move(id).tensor)];
  }
  /// The lives of a tensor end in the order of its copies in: they are issued in that order.
  [[nodiscard]] bool in_turn(MoveId id) const {
    const MoveId previous = previous_in_[static_cast<std::size_t>(id)];
    return previous == kNone || move_step_[static_cast<std::size_t>(previous)] != kNone;
  }
  /// Where in the list a copy-in with a trigger stands at the earliest.
  [[nodiscard]] CallId trigger_position(MoveId id) const {
    return move(id).trigger_previous ? 0 : move(id).trigger;
  }
  /// Last call before the life's bytes are free or on their way out.
  [[nodiscard]] CallId end_of(const Life& l) const {
    return l.end_move != kNone ? move(l.end_move).call : l.last_call;
  }
  [[nodiscard]] Bytes extended_load(std::int32_t q) const {
    return q < calls_ ? previous_load_[static_cast<std::size_t>(q)]
                      : load_[static_cast<std::size_t>(q - calls_)];
  }
  [[nodiscard]] Nanos extended_call_end(std::int32_t q) const {
    return q < calls_ ? previous_call_end_[static_cast<std::size_t>(q)]
                      : call_end_[static_cast<std::size_t>(q - calls_)];
  }
  [[nodiscard]] Nanos extended_out_end(std::int32_t j) const {
    return j < outs_count() ? previous_out_end_[static_cast<std::size_t>(j)]
                            : out_end_[static_cast<std::size_t>(j - outs_count())];
  }
  /// Copy-outs issued before call q (extended), counted over both iterations.
  [[nodiscard]] std::int32_t outs_before(std::int32_t q) const {
    return q < calls_ ? outs_before_[static_cast<std::size_t>(q)]
                      : outs_count() + outs_before_[static_cast<std::size_t>(q - calls_)];
  }
  [[nodiscard]] std::int32_t outs_count() const {
    return static_cast<std::int32_t>(x_.outs.size());
  }

  // Waits while the list is made, resolved to list positions at the end.
  struct Pending {
    std::int32_t call = kNone;   ///< extended device call
    std::int32_t out = kNone;    ///< extended copy-out
    MoveId in = kNone;           ///< copy-in of this iteration
    MoveId in_previous = kNone;  ///< copy-in of the previous iteration
    std::int32_t host = kNone;   ///< extended host call
  };
  void push(StepKind kind, StreamId stream, std::int32_t id, Nanos start, Nanos duration,
            const Pending& waits);

  const Program& program_;
  StreamTable table_;
  Expander expander_;

  // Per program, fixed.
  std::vector<Nanos> algorithm_time_;
  std::vector<Bytes> algorithm_workspace_;
  std::vector<std::int32_t> algorithm_start_;
  std::vector<Bytes> tensor_bytes_;
  std::vector<Nanos> out_time_;
  std::vector<Nanos> in_time_;

  // Per strategy.
  Expansion x_;
  std::int32_t calls_ = 0;
  std::vector<char> on_device_;  ///< per call
  std::vector<CallId> device_call_at_or_before_;
  std::vector<std::int32_t> out_position_;  ///< per move: its place in x_.outs
  std::vector<std::int32_t> outs_before_;   ///< per call (and one past)
  std::vector<Bytes> out_prefix_;  ///< bytes freed by the first k copy-outs, of two iterations
  std::vector<std::int32_t> call_needs_out_;  ///< per call: copy-out (previous iteration) that
                                              ///< frees the last life of what it writes first
  std::vector<Bytes> call_allocates_;         ///< per call: bytes it begins, workspace included
  std::vector<MoveId> previous_in_;    ///< per move: the copy-in of the same tensor before it
  std::vector<MoveId> last_in_;        ///< scratch, per tensor
  std::vector<MoveId> free_ins_;       ///< copy-ins without a trigger, by deadline
  std::vector<Nanos> latest_start_;    ///< of free_ins_, by the pass before
  std::vector<MoveId> triggered_ins_;  ///< the others, by position of the trigger, then deadline
  std::vector<Nanos> call_time_;
  std::vector<Bytes> static_load_;

  // Per pass.
  std::vector<Bytes> load_;
  std::vector<Bytes> previous_load_;
  std::vector<Bytes> in_flight_;  ///< predicted bytes still being copied out
  std::vector<Bytes> reserved_;   ///< of copies-in with triggers that are not issued yet
  std::vector<Nanos> call_start_;
  std::vector<Nanos> call_end_;
  std::vector<Nanos> previous_call_end_;
  std::vector<Nanos> host_end_;
  std::vector<Nanos> previous_host_end_;
  std::vector<Nanos> out_end_;
  std::vector<Nanos> previous_out_end_;
  std::vector<Nanos> in_end_;  ///< per move
  std::vector<Nanos> previous_in_end_;
  std::vector<MoveId> call_needs_in_;  ///< per call: the last copy-in issued for it
  std::vector<Step> steps_;
  std::vector<Pending> pending_;
  std::vector<std::int32_t> call_step_;
  std::vector<std::int32_t> move_step_;
  std::array<Nanos, kMaxStreams> ready_{};
  std::size_t next_in_ = 0;
  std::size_t next_triggered_ = 0;
  std::int32_t compute_knows_out_ = kNone;
  std::int32_t in_knows_call_ = kNone;
  std::int32_t in_knows_out_ = kNone;
  ReplayScratch scratch_;
};

}  // namespace tidepool
