// TimingProblem: what a strategy comes to for the time pass: calls, copies and load by position in
// the list of calls, and nothing else.
//
// Extended positions count over two iterations: call c of the previous iteration is c, of the
// current one c + calls; copy-out j likewise.
#pragma once

#include <span>
#include <vector>

#include "cost/machine.h"
#include "lower/expand.h"

namespace tidepool {

struct TimedCall {
  Nanos time{};
  Bytes allocates = 0;             ///< what begins with it, workspace included
  std::int32_t needs_out = kNone;  ///< extended: the copy-out that frees the last life of what it
                                   ///< writes first, or that waits for it by a hint
  std::int32_t outs_before = 0;    ///< copies out issued before it
  Bytes workspace = 0;             ///< of `allocates`
  bool on_device = false;
};

struct TimedOut {
  CallId call = 0;          ///< issued after it
  std::int32_t id = kNone;  ///< the move
  Nanos time{};
  Bytes bytes = 0;
  CallId host_reader = kNone;  ///< the call of the previous iteration that read the host bytes
};

struct TimedIn {
  CallId call = 0;          ///< needed before it
  std::int32_t id = kNone;  ///< the move
  Nanos time{};
  Bytes bytes = 0;
  std::int32_t before = kNone;     ///< the copy-in of the same tensor before it
  std::int32_t after_out = kNone;  ///< extended: of its bytes and of its life of last time
  std::int32_t after_call = 0;     ///< extended: end of its life of last time, trigger
  CallId after_host_call = kNone;  ///< the host op of this iteration that made its bytes
  CallId not_before = 0;           ///< position in the list: behind what makes its bytes
  CallId trigger = kNone;          ///< position in the list where it wants to be issued
};

/// What a host call waits for besides host calls.
struct HostWait {
  CallId call = kNone;
  std::int32_t out = kNone;  ///< extended; or
  std::int32_t in = kNone;   ///< this copy-in
  bool previous = false;     ///< of the previous iteration
};

struct TimingProblem {
  std::vector<TimedCall> calls;
  std::vector<TimedOut> outs;           ///< in the order of issue
  std::vector<TimedIn> ins;             ///< in the order of their calls
  std::vector<std::int32_t> free_ins;   ///< those without a trigger, in the same order
  std::vector<std::int32_t> triggered;  ///< the others, by trigger, then call
  std::vector<HostWait> host_waits;     ///< in the order of calls
  std::vector<Bytes> freed;             ///< by the first k copies out, of two iterations
  /// Per call, of all but what copies in bring before the calls they are for.
  std::vector<Bytes> static_load;
  Nanos compute_time{};
  Nanos out_time{};
  Nanos in_time{};

  void clear_copies();
  [[nodiscard]] std::int32_t call_count() const { return static_cast<std::int32_t>(calls.size()); }
  [[nodiscard]] std::int32_t out_count() const { return static_cast<std::int32_t>(outs.size()); }
  /// Copies out issued before an extended call.
  [[nodiscard]] std::int32_t outs_before(std::int32_t call) const {
    const std::int32_t n = call_count();
    return call < n ? calls[static_cast<std::size_t>(call)].outs_before
                    : out_count() + calls[static_cast<std::size_t>(call - n)].outs_before;
  }
};

/// Lives and moves with the positions of the moves among the copies out, or in: of a whole
/// expansion, or of one tensor.
struct TimingPart {
  std::span<const Move> moves;
  std::span<const Life> lives;
  std::span<const std::int32_t> position;
};

/// Makes timing problems of one program's strategies. Allocates nothing once its memory has grown.
class TimingProblems {
 public:
  /// `program` must outlive this.
  TimingProblems(const Program& program, const Machine& machine);

  /// Of an expanded strategy. Ids are those of its moves.
  void make(const Strategy& strategy, const Expansion& expansion, TimingProblem& problem);

  // The pieces of `make`. `load` is the static load as a difference array of one entry more.
  /// A call's time and workspace by the algorithm chosen.
  void set_algorithm(const Strategy& strategy, OpId op, TimedCall& call) const;
  [[nodiscard]] TimedOut timed_out(const TimingPart& part, MoveId id) const;
  /// Where copies out have their positions, and those in of the same tensor before it.
  [[nodiscard]] TimedIn timed_in(const TimingPart& part, MoveId id, const TimingProblem& p) const;
  /// Adds `sign` times the load of a life.
  void add_life(const TimingPart& part, const Life& life, int sign, TimingProblem& p,
                std::vector<Bytes>& load) const;
  /// What a call must wait for whose output takes the place of a life that this move ends.
  static void add_needed_out(const TimingPart& part, MoveId out, TimingProblem& p);
  /// Of a host call whose operand is this life.
  static void add_host_waits(const TimingPart& part, CallId call, const Life& life,
                             TimingProblem& p);
  /// When all else is there.
  static void finish(const std::vector<Bytes>& load, TimingProblem& p);

 private:
  const Program& program_;
  std::vector<Nanos> algorithm_time_;
  std::vector<Bytes> algorithm_workspace_;
  std::vector<std::int32_t> algorithm_start_;
  std::vector<Bytes> tensor_bytes_;
  std::vector<Nanos> out_time_;
  std::vector<Nanos> in_time_;
  std::vector<std::int32_t> position_;
  std::vector<std::int32_t> last_in_;  ///< per tensor
  std::vector<Bytes> load_;
};

}  // namespace tidepool
