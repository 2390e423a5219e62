// The simulator behind the agent's environment (DQN paper, sections 4.5 to 4.8): how long an
// iteration takes with what has been decided so far.
//
// Note [Simulated iteration]. What runs and what moves for the decisions is what `lower` would make
// of them (Expander, TimingProblems), so recomputation has the same chains. The times are the
// paper's:
// - Ops run in order. Copies out follow each other on one link, in the order in which the agent
//   decided on them; one begins with the op at which it was decided, alongside it (behind it where
//   that op makes the value). Other copies out, of results and of tensors that wrap, begin behind
//   their op. Bytes are free when their copy is over.
// - A call that needs memory waits for the copies out in flight.
// - Copies in follow each other in the order of reuse, and begin with an op when the load then
//   stays within the limit from there to the reuse; or before the op that needs them, which waits.
// - Where the load exceeds the limit and nothing is in flight, decisions are still open: the excess
//   counts as gone, but no copy in may begin under it.
// - An iteration begins with the copies out of the one before that are still in flight; a second
//   pass begins with what the first left. What the next iteration could bring back already in this
//   one it does not.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lower/expand.h"
#include "lower/timing_problem.h"

namespace tidepool::dqn {

/// A copy out that the agent decided on.
struct Departure {
  GapId gap = kNone;
  OpId op = kNone;      ///< the agent was at: in the gap or the op that begins it
  bool at_end = false;  ///< when that op is over; otherwise with it
};

struct SimulatedIteration {
  bool possible = false;  ///< the strategy can be expanded
  Nanos time{};
  OpId blocked = kNone;  ///< the first op that has too little memory, whatever it waits for
};

/// Not thread-safe.
class IterationSimulator {
 public:
  /// All must outlive this.
  IterationSimulator(const Program& program, const AccessIndex& index, const Machine& machine);

  /// `departures`: of the strategy's swaps, in the order of the decisions; those of gaps without a
  /// copy out count for nothing. Allocates nothing once its memory has grown.
  SimulatedIteration run(const Strategy& strategy, std::span<const Departure> departures,
                         Bytes limit);

  // Of the last run, which was possible.
  [[nodiscard]] Nanos start(OpId op) const { return start_[call_of_[index_at(op)]]; }
  [[nodiscard]] Nanos end(OpId op) const { return end_[call_of_[index_at(op)]]; }
  /// When the gap's copy out is over; below zero where it has none.
  [[nodiscard]] Nanos out_end(GapId gap) const;
  /// Per op: whether it, or what is recomputed before it, exceeds the limit.
  [[nodiscard]] const std::vector<char>& over() const { return over_; }

 private:
  struct Out {
    CallId call = 0;
    bool at_end = false;
    std::int32_t order = 0;  ///< among those that begin there
    std::int32_t id = 0;     ///< position in the timing problem
  };
  struct Copy {
    Nanos end{};
    Bytes bytes = 0;
  };
  static std::size_t index_at(std::int32_t i) { return static_cast<std::size_t>(i); }
  void find_calls();
  void order_outs(const Strategy& strategy, std::span<const Departure> departures);
  void set_load();
  void find_over();
  void pass(SimulatedIteration& result);
  bool await_memory(CallId call);
  void begin_needed(CallId call);
  void prefetch(CallId call);
  [[nodiscard]] bool may_begin(const TimedIn& in, CallId call) const;
  [[nodiscard]] bool stays_within(CallId from, CallId to, Bytes bytes) const;
  void begin_in(std::size_t in, CallId from);
  void begin_outs(CallId call, bool at_end);
  void forget_ended();
  [[nodiscard]] Nanos source_end(const TimedIn& in) const;

  const Program& program_;
  const AccessIndex& index_;
  bool duplex_;
  Expander expander_;
  TimingProblems problems_;
  Expansion x_;
  TimingProblem p_;
  Bytes limit_ = 0;
  std::vector<std::size_t> call_of_;        ///< per op
  std::vector<OpId> owner_;                 ///< per call: the op it runs for
  std::vector<std::int32_t> departure_of_;  ///< per gap
  std::vector<Out> outs_;
  std::vector<Bytes> base_;  ///< per call: load without copies in before their calls
  std::vector<char> over_;
  // Of a pass.
  std::vector<Bytes> load_;
  std::vector<Nanos> start_;
  std::vector<Nanos> end_;
  std::vector<Nanos> out_end_;  ///< per out of the problem; below zero: not begun
  std::vector<Nanos> arrival_;  ///< per in; below zero: not begun
  std::vector<Copy> flying_;
  std::size_t first_flying_ = 0;
  Bytes in_flight_ = 0;
  std::vector<Copy> carried_;
  Nanos now_{};
  Nanos out_free_{};
  Nanos in_free_{};
  std::size_t next_out_ = 0;
  std::size_t first_in_ = 0;  ///< all before it have begun
};

}  // namespace tidepool::dqn
