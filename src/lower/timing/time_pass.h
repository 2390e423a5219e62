// The time pass: when copies are issued, what waits for what, and the times that follow. See Notes
// [Time pass] and [Cyclic time] in evaluate.h.
#pragma once

#include <array>
#include <limits>
#include <span>
#include <vector>

#include "base/at.h"
#include "lower/timing/load_curve.h"
#include "lower/timing/prediction.h"
#include "lower/timing/step_list.h"
#include "lower/timing_problem.h"

namespace tidepool {

struct TimingLimits {
  Bytes load_limit = 0;
  bool prefetch = true;
  Nanos lead = Nanos::max();
};

/// Reused between problems. Not thread-safe.
class TimePass {
 public:
  explicit TimePass(const StreamTable& streams) : table_(streams), list_(streams) {}

  /// False when memory cannot be had before some call: `stuck`. `problem` must stay until the next.
  bool run(const TimingProblem& problem, const TimingLimits& limits);
  [[nodiscard]] CallId stuck() const { return stuck_; }

  // Of the last run that returned true.
  /// Iterations go on like the last one made: its period is the long run.
  [[nodiscard]] bool settled() const { return settled_; }
  [[nodiscard]] Nanos period() const { return ready_[at(table_.compute)]; }
  [[nodiscard]] std::span<const Bytes> load() const { return load_; }
  /// Of a device call in the last iteration made, whose time 0 is when the compute stream has done
  /// the iteration before.
  [[nodiscard]] Nanos start_of(CallId call) const { return now_.call_start[at(call)]; }
  [[nodiscard]] Nanos end_of(CallId call) const { return now_.call_end[at(call)]; }

  /// As `run`, and lists what was issued. The times are those of the last iteration made.
  bool run_and_list(const TimingProblem& problem, const TimingLimits& limits,
                    std::vector<Step>& steps);

 private:
  static constexpr Nanos kLongAgo{std::numeric_limits<Nanos::rep>::min() / 4};
  /// A copy-in starts at the earliest when this many calls before its place in the list are over.
  static constexpr std::int32_t kWindow = 16;
  static constexpr std::size_t kPassedBy = 8;
  static constexpr CallId kNever = std::numeric_limits<CallId>::max();

  struct Choice {
    std::int32_t call = 0;       ///< extended: calls up to this one must be over
    std::int32_t out = 0;        ///< extended: copies out up to this one must be over
    Nanos start = Nanos::max();  ///< none was found: at no time
    [[nodiscard]] bool found() const { return start != Nanos::max(); }
  };

  void begin(const TimingProblem& problem, const TimingLimits& limits);
  void begin_pass();
  bool make_pass();
  void find_events();
  [[nodiscard]] CallId pass_plain_calls(CallId call);
  bool issue_copies_in(CallId call);
  [[nodiscard]] bool may_issue_copies_in(CallId call) const;
  [[nodiscard]] Nanos may_wait_until(CallId call) const;
  void begin_with(std::size_t next);
  bool issue_triggered(CallId call);
  [[nodiscard]] bool has_room(std::int32_t in, CallId from);
  [[nodiscard]] Choice earliest(const TimedIn& in, CallId position, Nanos not_before) const;
  void issue_in(std::int32_t i, CallId c, const Choice& choice);
  bool issue_device_call(CallId call);
  void issue_host_call(CallId call);
  void issue_outs(CallId call);
  void push(StepKind kind, StreamId stream, std::int32_t id, Nanos start, Nanos duration,
            const ExtendedWaits& waits);
  /// Something of the previous iteration had been waited for: it must not come later now, and what
  /// decided the start not earlier.
  void depends(Nanos start, Nanos then, Nanos now) {
    if (then != now && (then >= start || now > start)) settled_ = false;
  }
  void find_whether_settled();

  [[nodiscard]] std::int32_t calls() const { return p_->call_count(); }
  [[nodiscard]] std::int32_t outs() const { return p_->out_count(); }
  [[nodiscard]] Bytes extended_load(std::int32_t q) const {
    return q < calls() ? previous_load_[at(q)] : load_[at(q - calls())];
  }
  [[nodiscard]] Nanos call_end(std::int32_t q) const {
    return q < calls() ? then_.call_end[at(q)] - shift_ : now_.call_end[at(q - calls())];
  }
  [[nodiscard]] Nanos out_end(std::int32_t j) const {
    return j < outs() ? then_.out_end[at(j)] - shift_ : now_.out_end[at(j - outs())];
  }

  const StreamTable& table_;
  const TimingProblem* p_ = nullptr;
  /// Calls that may be more than plain: a plain one is a device call for which no copy is due,
  /// behind which none begins, which waits for none by itself. In order; calls() at the end.
  std::vector<CallId> events_;
  std::vector<char> is_event_;
  std::size_t next_event_ = 0;
  std::vector<Nanos> unstalled_;  ///< [c + 1]: end of call c where nothing waits
  TimingLimits limits_;
  CallId stuck_ = kNone;
  bool settled_ = false;
  bool listing_ = false;

  IterationTimes then_;  ///< of the previous iteration, whose period is shift_
  IterationTimes now_;
  Nanos shift_{};
  std::vector<Bytes> load_;
  std::vector<Bytes> previous_load_;
  std::vector<Bytes> ends_;  ///< per call: bytes of copies in that became part of the static load
  Bytes early_ = 0;          ///< bytes in load of copies in before the calls they are for
  LoadCurve occupied_;       ///< load, and predicted bytes still being copied out
  std::vector<Bytes> in_flight_;
  std::vector<Nanos> latest_start_;    ///< of free_ins, by the pass before
  std::vector<std::int32_t> no_room_;  ///< per copy-in: where there was no room
  /// What room a copy-in had beside others when that was looked at last.
  struct Room {
    std::int32_t additions = kNone;  ///< additions_ then
    Bytes beside = 0;
  };
  std::vector<Room> room_;
  std::int32_t additions_ = 0;           ///< to occupied_ in this pass
  std::vector<char> issued_;             ///< per copy-in
  std::vector<std::int32_t> passed_by_;  ///< copies in that others go before, at most kPassedBy
  std::vector<std::int32_t> needs_in_;   ///< per call: the last copy-in issued for it
  std::array<Nanos, kMaxStreams> ready_{};
  std::array<Nanos, kMaxStreams> ready_before_{};  ///< at the start of the iteration
  /// The first of free_ins that is not issued, and what follows each of the others: those issued in
  /// between are passed over.
  std::size_t next_in_ = 0;
  std::vector<std::size_t> after_;
  CallId next_due_ = 0;  ///< the call it is for; kNever behind the last
  /// Before this call nothing can be issued that is not due: what is ready has no room until then,
  /// and the rest is not ready. Room only gets less.
  CallId retry_at_ = 0;
  std::size_t next_triggered_ = 0;
  std::int32_t compute_knows_out_ = kNone;
  std::int32_t in_knows_call_ = kNone;
  std::int32_t in_knows_out_ = kNone;

  /// A start that depended on the previous iteration.
  struct Dependency {
    Nanos start{};
    enum Kind : std::uint8_t { call, out, in, host } kind = call;
    std::int32_t index = 0;
  };
  std::vector<Dependency> dependencies_;
  std::array<Nanos, kMaxStreams> first_start_{};  ///< of each stream in this pass
  StepList list_;
};

}  // namespace tidepool
