// TimePass: the times of an iteration in the long run. It makes two passes over the calls, each an
// iteration: the second begins as the first has ended. See Notes [Time pass] and [Cyclic time] in
// evaluate.h.
//
// Before each call it lets copies in be issued (CopiesIn), then issues the call, which waits for
// what it needs, and the copies out behind it. The times are kept by IssuedSteps, the bytes by
// CycleLoad; stretches of PlainCalls are issued at once.
#pragma once

#include <span>
#include <vector>

#include "lower/timing/copies_in.h"
#include "lower/timing/cycle_load.h"
#include "lower/timing/issued_steps.h"
#include "lower/timing/plain_calls.h"
#include "lower/timing/timing_limits.h"
#include "lower/timing_problem.h"

namespace tidepool {

/// Reused between problems. Not thread-safe.
class TimePass {
 public:
  explicit TimePass(const StreamTable& streams)
      : table_(streams), steps_(streams), copies_in_(streams, steps_, load_) {}
  TimePass(const TimePass&) = delete;
  TimePass& operator=(const TimePass&) = delete;

  /// False when memory cannot be had before some call: `stuck`. `problem` must stay until the next.
  bool run(const TimingProblem& problem, const TimingLimits& limits) {
    return make_passes(problem, limits, false);
  }
  [[nodiscard]] CallId stuck() const { return stuck_; }

  // Of the last run that returned true.
  /// Iterations go on like the last one made: its period is the long run.
  [[nodiscard]] bool settled() const { return settled_; }
  [[nodiscard]] Nanos period() const { return steps_.ready(table_.compute); }
  [[nodiscard]] std::span<const Bytes> load() const { return load_.all(); }
  /// Of a device call in the last iteration made, whose time 0 is when the compute stream has done
  /// the iteration before.
  [[nodiscard]] Nanos start_of(CallId call) const { return steps_.start_of(call); }
  [[nodiscard]] Nanos end_of(CallId call) const { return steps_.end_of(call); }

  /// As `run`, and lists what was issued. The times are those of the last iteration made.
  bool run_and_list(const TimingProblem& problem, const TimingLimits& limits,
                    std::vector<Step>& steps);

 private:
  bool make_passes(const TimingProblem& problem, const TimingLimits& limits, bool listing);
  bool make_pass();
  [[nodiscard]] CallId pass_plain_calls(CallId first);
  bool issue_device_call(CallId call);
  void issue_host_call(CallId call);
  void issue_outs(CallId call);

  const StreamTable& table_;
  const TimingProblem* p_ = nullptr;
  Bytes load_limit_ = 0;
  IssuedSteps steps_;
  CycleLoad load_;
  PlainCalls plain_calls_;
  CopiesIn copies_in_;
  /// Extended: the compute stream has waited for copies out up to this one.
  std::int32_t compute_knows_out_ = kNone;
  CallId stuck_ = kNone;
  bool settled_ = false;
};

}  // namespace tidepool
