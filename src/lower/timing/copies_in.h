// CopiesIn: when copies in are issued. See Note [Time pass] in evaluate.h.
//
// Invariants: a copy-in is issued once a pass, before the call it is for; it has waited for all the
// memory it takes, on both streams, when it starts. What copies in wait for only grows: the stream
// knows that calls up to `knows_call_` and copies out up to `knows_out_` are over.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/at.h"
#include "lower/timing/cycle_load.h"
#include "lower/timing/in_queue.h"
#include "lower/timing/issued_steps.h"
#include "lower/timing/plain_calls.h"
#include "lower/timing/room_ahead.h"
#include "lower/timing/timing_limits.h"
#include "lower/timing_problem.h"

namespace tidepool {

/// Reused between problems. Not thread-safe.
class CopiesIn {
 public:
  /// All must outlive this. Copies are issued to `steps`, and their bytes added to `load`.
  CopiesIn(const StreamTable& streams, IssuedSteps& steps, CycleLoad& load)
      : table_(streams), steps_(steps), load_(load) {}

  void begin(const TimingProblem& problem, const TimingLimits& limits);
  /// `steps` has begun the iteration, and knows the one before.
  void begin_pass();

  /// Issues what is issued before the call, which `load` has reached. False where one that is for
  /// the call cannot have its memory.
  [[nodiscard]] bool issue_before(CallId c) {
    if (!p_->triggered.empty() && !issue_triggered(c)) return false;
    return !may_issue(c) || issue_free(c);
  }
  /// The first of the plain calls [first, end) before which one may be issued, where they start
  /// `late` later than if nothing waited; `end`: none of them.
  [[nodiscard]] CallId first_possible(const PlainCalls& plain, CallId first, CallId end,
                                      Nanos late) const {
    // As may_issue has it, of many calls at once.
    const CallId from = std::max(first, retry_at_);
    if (queue_.empty() || from >= end) return end;
    if (table_.in == table_.out) return from;
    return plain.first_ending_after(from, end, steps_.ready(table_.in) - late);
  }
  /// The last copy-in issued for the call; kNone: there is none.
  [[nodiscard]] std::int32_t last_for(CallId c) const { return last_for_[at(c)]; }

 private:
  static constexpr Nanos kLongAgo{std::numeric_limits<Nanos::rep>::min() / 4};
  /// A copy-in starts at the earliest when this many calls before its place in the list are over.
  static constexpr std::int32_t kWindow = 16;
  static constexpr std::size_t kPassedBy = 8;

  struct Choice {
    std::int32_t call = 0;       ///< extended: calls up to this one must be over
    std::int32_t out = 0;        ///< extended: copies out up to this one must be over
    Nanos start = Nanos::max();  ///< none was found: at no time
    [[nodiscard]] bool found() const { return start != Nanos::max(); }
  };

  /// False where `issue_free` would find nothing to do, as it mostly does. The pass that lists
  /// skips nothing: tests compare the two.
  [[nodiscard]] bool may_issue(CallId c) const {
    if (steps_.listing()) return true;
    if (queue_.next_due() == c) return true;
    if (queue_.empty() || c < retry_at_) return false;
    return steps_.ready(table_.in) < may_wait_until(c);
  }
  /// The end of the call: what would not start before then starts as early when it is issued later,
  /// and takes memory for less long. Nanos::max() where a copy out could go first, on a link that
  /// takes turns, and where the call is none of the device.
  [[nodiscard]] Nanos may_wait_until(CallId c) const {
    const TimedCall& call = p_->calls[at(c)];
    if (!call.on_device || table_.in == table_.out) return Nanos::max();
    return steps_.ready(table_.compute) + call.time;
  }
  bool issue_free(CallId c);
  bool issue_triggered(CallId c);
  [[nodiscard]] Choice earliest(const TimedIn& in, CallId position, Nanos not_before) const;
  void issue(std::int32_t i, CallId c, const Choice& choice);

  const StreamTable& table_;
  IssuedSteps& steps_;
  CycleLoad& load_;
  const TimingProblem* p_ = nullptr;
  TimingLimits limits_;

  InQueue queue_;  ///< those without a trigger
  RoomAhead room_;
  std::vector<Nanos> latest_start_;      ///< of free_ins, by the pass before
  std::vector<std::int32_t> passed_by_;  ///< copies in that others go before, at most kPassedBy
  /// Before this call nothing can be issued that is not due: what is ready has no room until then,
  /// and the rest is not ready. Room only gets less.
  CallId retry_at_ = 0;
  std::size_t next_triggered_ = 0;
  std::vector<char> issued_;            ///< per copy-in
  std::vector<std::int32_t> last_for_;  ///< per call
  std::int32_t knows_call_ = kNone;
  std::int32_t knows_out_ = kNone;
};

}  // namespace tidepool
