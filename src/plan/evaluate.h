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
// simulator and the devices stall exactly where this engine does.
//
// Note [Cyclic time]. One list is issued every iteration. The pass is made twice: the second time
// the end of the first stands for the previous iteration (copies in flight across the boundary,
// load at its tail). A final replay of the list with its waits gives the steady state.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "cost/machine.h"
#include "plan/schedule.h"
#include "plan/strategy.h"

namespace tidepool {

/// The stream table of a machine with one device.
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

/// One future instruction: an op, or one of the two copies of a gap.
struct Step {
  StepKind kind = StepKind::op;
  StreamId stream = 0;
  std::int32_t id = kNone;  ///< op, or gap
  std::array<StepWait, kMaxStreams> waits;
  Nanos duration{};
  Nanos start{};  ///< in the steady state, relative to the start of the iteration's compute
  Nanos end{};
};

/// Computes the steady state of a list of steps (start and end of each) by running iteration after
/// iteration until two agree. Returns the time of one iteration of the compute stream.
/// `scratch` avoids allocation between calls.
struct ReplayScratch {
  std::vector<Nanos> current_end;
  std::vector<Nanos> previous_end;
};
Nanos replay(std::span<Step> steps, StreamId compute, ReplayScratch& scratch);

struct Evaluation {
  bool feasible = false;
  OpId stuck = kNone;      ///< infeasible: the op whose memory cannot be had
  Nanos iteration_time{};  ///< steady state
  Nanos compute_time{};    ///< sum of the device ops' times
  Bytes peak_load = 0;     ///< largest load at any op
  [[nodiscard]] Nanos stall() const { return iteration_time - compute_time; }
};

struct EvaluateOptions {
  Bytes load_limit = 0;
  bool prefetch = true;  ///< false: every copy-in right before its op (streaming)
};

class Evaluator {
 public:
  /// `program` and `index` must outlive the evaluator.
  Evaluator(const Program& program, const AccessIndex& index, const Machine& machine);

  /// Not thread-safe; allocates nothing after the first call. Decisions other than keep and swap
  /// are not supported (asserted by `lower`).
  Evaluation evaluate(const Strategy& strategy, const EvaluateOptions& options);

  /// The list of the last feasible evaluation, with steady-state times.
  [[nodiscard]] std::span<Step> steps() { return steps_; }
  [[nodiscard]] const StreamTable& streams() const { return table_; }
  /// Load at each op of the last evaluation.
  [[nodiscard]] std::span<const Bytes> load() const { return load_; }

 private:
  // Iterations are addressed by extended indices: op q of the previous iteration is q, of the
  // current one q + ops; copy-outs likewise.
  struct Choice {
    std::int32_t op = 0;   ///< extended: ops up to this one must be over
    std::int32_t out = 0;  ///< extended: copy-outs up to this one must be over
    Nanos start{};
    bool found = false;
  };

  void prepare(const Strategy& strategy);
  void prepare_tensor(TensorId tensor);
  void add_load(OpId from, OpId to, Bytes bytes);
  void predict_unstalled();
  void predict_in_flight();
  bool pass(const EvaluateOptions& options, OpId& stuck);
  bool issue_copies_in(OpId op, const EvaluateOptions& options);
  [[nodiscard]] bool room_until_deadline(OpId from, OpId deadline, Bytes bytes, Bytes limit) const;
  [[nodiscard]] Choice earliest(GapId gap, OpId at, Bytes limit) const;
  void issue_copy_in(GapId gap, const Choice& choice);
  bool issue_device_op(OpId op, Bytes limit);
  void issue_host_op(OpId op);
  void issue_copies_out(OpId op);
  void close_pass();
  void resolve_waits();

  [[nodiscard]] Bytes extended_load(std::int32_t q) const {
    return q < ops_ ? previous_load_[static_cast<std::size_t>(q)]
                    : load_[static_cast<std::size_t>(q - ops_)];
  }
  [[nodiscard]] Nanos extended_op_end(std::int32_t q) const {
    return q < ops_ ? previous_op_end_[static_cast<std::size_t>(q)]
                    : op_end_[static_cast<std::size_t>(q - ops_)];
  }
  [[nodiscard]] Nanos extended_out_end(std::int32_t j) const {
    return j < outs_count() ? previous_out_end_[static_cast<std::size_t>(j)]
                            : out_end_[static_cast<std::size_t>(j - outs_count())];
  }
  /// Copy-outs issued before op q (extended), counted over both iterations.
  [[nodiscard]] std::int32_t outs_before(std::int32_t q) const {
    return q < ops_ ? outs_before_[static_cast<std::size_t>(q)]
                    : outs_count() + outs_before_[static_cast<std::size_t>(q - ops_)];
  }
  [[nodiscard]] std::int32_t outs_count() const { return static_cast<std::int32_t>(outs_.size()); }

  // Waits while the list is made: extended index per kind of target, resolved at the end.
  struct Pending {
    std::int32_t op = kNone;    ///< extended device op
    std::int32_t out = kNone;   ///< extended copy-out
    std::int32_t in = kNone;    ///< gap, of this iteration
    std::int32_t in_previous = kNone;  ///< gap, of the previous iteration
    std::int32_t host = kNone;  ///< extended host op
  };
  void push(StepKind kind, StreamId stream, std::int32_t id, Nanos start, Nanos duration,
            const Pending& waits);

  const Program& program_;
  const AccessIndex& index_;
  StreamTable table_;

  // Per program, fixed.
  std::int32_t ops_ = 0;
  std::vector<char> on_device_;
  std::vector<OpId> device_op_at_or_before_;
  std::vector<Nanos> algorithm_time_;
  std::vector<Bytes> algorithm_workspace_;
  std::vector<std::int32_t> algorithm_start_;
  std::vector<Bytes> tensor_bytes_;
  std::vector<Nanos> out_time_;
  std::vector<Nanos> in_time_;
  std::vector<GapId> gaps_by_from_;
  std::vector<GapId> gaps_by_to_;
  std::vector<std::int32_t> host_operand_gaps_;  ///< per host op operand: gap before, gap after
  std::vector<std::int32_t> host_operand_start_;

  // Per strategy.
  std::vector<char> has_out_;
  std::vector<char> has_in_;
  std::vector<char> tensor_moves_;
  std::vector<GapId> outs_;               ///< in issue order
  std::vector<GapId> ins_;                ///< in deadline order
  std::vector<std::int32_t> out_position_; ///< per gap: its place in outs_
  std::vector<std::int32_t> outs_before_; ///< per op (and one past): copy-outs issued before it
  std::vector<Bytes> out_prefix_;         ///< bytes freed by the first x copy-outs, two iterations
  std::vector<OpId> life_end_;            ///< per gap with copy-in: last op of the life it begins
  std::vector<std::int32_t> freed_by_out_;///< per gap with copy-in: extended copy-out to wait for
                                          ///< before the address is written again, or kNone
  std::vector<std::int32_t> op_needs_out_;///< per op: copy-out (previous iteration) that frees the
                                          ///< last life of what it writes first
  std::vector<Bytes> op_allocates_;       ///< per op: bytes of tensors and workspace it begins
  std::vector<Nanos> op_time_;
  std::vector<Bytes> static_load_;

  // Per pass.
  std::vector<Bytes> load_;
  std::vector<Bytes> previous_load_;
  std::vector<Bytes> in_flight_;          ///< predicted bytes still being copied out at each op
  std::vector<Nanos> op_start_;
  std::vector<Nanos> op_end_;
  std::vector<Nanos> previous_op_end_;
  std::vector<Nanos> out_end_;
  std::vector<Nanos> previous_out_end_;
  std::vector<Nanos> in_end_;             ///< per gap
  std::vector<Nanos> previous_in_end_;
  std::vector<Nanos> host_end_;           ///< per op
  std::vector<Nanos> previous_host_end_;
  std::vector<GapId> op_needs_in_;        ///< per op: the last copy-in issued for it
  std::vector<Step> steps_;
  std::vector<Pending> pending_;
  std::vector<std::int32_t> op_step_;
  std::vector<std::int32_t> out_step_;    ///< per position in outs_
  std::vector<std::int32_t> in_step_;     ///< per gap
  std::array<Nanos, kMaxStreams> ready_{};
  std::size_t next_in_ = 0;
  std::int32_t compute_knows_out_ = kNone;
  std::int32_t in_knows_op_ = kNone;
  std::int32_t in_knows_out_ = kNone;
  ReplayScratch scratch_;
};

}  // namespace tidepool
