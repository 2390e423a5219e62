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
// for the earliest start, at most some calls before its place in the list. Those waits are
// instructions of the schedule like any other, so the simulator and the devices stall exactly where
// this engine does. A strategy may fix where a copy is issued and which op waits for it (CopyHint);
// memory is waited for all the same.
//
// Note [Cyclic time]. One list is issued every iteration. The pass is made twice: the second time
// the end of the first stands for the previous iteration (copies in flight across the boundary,
// load at its tail). Mostly the second pass ends as the first did, and its times are those of every
// iteration from then on. Where not, a replay of the list with its waits gives the long run.
//
// Without recomputation and hints an evaluation makes no expansion and no list of steps until they
// are asked for. About two thirds of its time go into the two passes. A changed decision costs most
// of a whole evaluation: both passes are made from the beginning, although only about a tenth of
// the copies in then start at another time. bench_evaluate prints both.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lower/expand.h"
#include "lower/timing/replay.h"
#include "lower/timing/tensor_parts.h"
#include "lower/timing/time_pass.h"
#include "lower/timing_problem.h"

namespace tidepool {

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
  /// An iteration that takes longer is of no use, and counts as infeasible.
  Nanos give_up_above = Nanos::max();
};

/// Not thread-safe.
class Evaluator {
 public:
  /// `program` and `index` must outlive the evaluator.
  Evaluator(const Program& program, const AccessIndex& index, const Machine& machine);

  /// Allocates nothing once its memory has grown.
  Evaluation evaluate(const Strategy& strategy, const EvaluateOptions& options);

  /// The next evaluation does not use what the last one left.
  void forget() { parts_.forget(); }

  // Of the last evaluation, which was feasible.
  /// Its list, with the times of the steady state.
  [[nodiscard]] std::span<Step> steps() {
    make_list();
    return steps_;
  }
  [[nodiscard]] const Expansion& expansion() {
    make_list();
    return x_;
  }
  /// Load at each call.
  [[nodiscard]] std::span<const Bytes> load() const { return pass_.load(); }
  /// Calls `see(op, delay)` for every op of the program that does not start when the one before it
  /// ends, in their order: for stalls, and for clones in between. Mostly without making the list.
  template <class See>
  void each_delay(See&& see) {
    if (listed_) {
      see_listed_delays(see);
    } else {
      see_delays_of_pass(see);
    }
  }

  /// Calls `see(op, bytes)` for every device call: the load while it runs, without its workspace
  /// and without copies in before the calls they are for.
  template <class See>
  void each_least_load(See&& see) const {
    const TimingProblem& problem = calls_are_ops_ ? parts_.problem() : problem_;
    for (CallId c = 0; c < problem.call_count(); ++c) {
      const TimedCall& call = problem.calls[static_cast<std::size_t>(c)];
      if (!call.on_device) continue;
      see(calls_are_ops_ ? op_of(c) : x_.calls[static_cast<std::size_t>(c)].op,
          problem.static_load[static_cast<std::size_t>(c)] - call.workspace);
    }
  }

  [[nodiscard]] const StreamTable& streams() const { return table_; }

 private:
  /// Returns the iteration time.
  Nanos make_list();
  template <class See>
  void see_listed_delays(See& see) {
    Nanos ready{0};
    for (const Step& step : steps_) {
      if (step.stream != table_.compute) continue;
      const Call& call = x_.calls[static_cast<std::size_t>(step.id)];
      if (call.clone) continue;
      if (step.start > ready) see(call.op, step.start - ready);
      ready = step.end;
    }
  }
  template <class See>
  void see_delays_of_pass(See& see) {
    const TimingProblem& problem = calls_are_ops_ ? parts_.problem() : problem_;
    Nanos ready{0};
    for (CallId c = 0; c < problem.call_count(); ++c) {
      if (!problem.calls[static_cast<std::size_t>(c)].on_device) continue;
      if (!calls_are_ops_ && x_.calls[static_cast<std::size_t>(c)].clone) continue;
      const Nanos start = pass_.start_of(c);
      if (start > ready) {
        see(calls_are_ops_ ? op_of(c) : x_.calls[static_cast<std::size_t>(c)].op, start - ready);
      }
      ready = pass_.end_of(c);
    }
  }

  const StreamTable table_;
  Expander expander_;
  TimingProblems problems_;
  TensorParts parts_;
  TimePass pass_;
  Expansion x_;
  TimingProblem problem_;
  // Of the last evaluation.
  TimingLimits limits_;
  bool calls_are_ops_ = false;  ///< its problem is that of parts_, otherwise problem_ of x_
  bool listed_ = false;
  std::vector<Step> steps_;
  ReplayScratch scratch_;
};

}  // namespace tidepool
