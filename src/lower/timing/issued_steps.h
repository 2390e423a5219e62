// IssuedSteps: when everything starts and ends that a time pass has issued, in the iteration it is
// making and in the one before.
//
// Invariants: what is issued to a stream starts when the stream has done what was issued before, or
// later. Time 0 is when the compute stream has done the iteration before; so times of that
// iteration are moved by its period (`period_before_`) when they are asked for, and only then.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/at.h"
#include "lower/timing/prediction.h"
#include "lower/timing/step_list.h"
#include "lower/timing_problem.h"

namespace tidepool {

/// Reused between problems. Not thread-safe.
class IssuedSteps {
 public:
  explicit IssuedSteps(const StreamTable& streams) : table_(streams), list_(streams) {}

  /// The iteration before is one in which nothing waits. `listing`: the steps are kept for `list`.
  void begin(const TimingProblem& problem, bool listing);
  /// What has been issued becomes the iteration before.
  void begin_iteration();

  void issue_device_call(CallId c, Nanos start, Nanos duration, const ExtendedWaits& waits) {
    now_.call_start[at(c)] = start;
    push(StepKind::op, table_.compute, c, start, duration, waits);
    now_.call_end[at(c)] = now_.host_end[at(c)] = start + duration;
  }
  void issue_host_call(CallId c, Nanos start, Nanos duration, const ExtendedWaits& waits) {
    now_.call_start[at(c)] = ready_[at(table_.compute)];
    push(StepKind::op, table_.host, c, start, duration, waits);
    now_.host_end[at(c)] = start + duration;
    now_.call_end[at(c)] = ready_[at(table_.compute)];  // for waits on the compute stream up to it
  }
  void issue_out(std::int32_t j, Nanos start, Nanos duration, const ExtendedWaits& waits) {
    push(StepKind::copy_out, table_.out, j, start, duration, waits);
    now_.out_end[at(j)] = start + duration;
  }
  void issue_in(std::int32_t i, Nanos start, Nanos duration, const ExtendedWaits& waits) {
    push(StepKind::copy_in, table_.in, i, start, duration, waits);
    now_.in_end[at(i)] = start + duration;
  }
  /// Device calls [first, end) that start one behind the other, each `late` later than where
  /// nothing waits: call c then starts at unstalled[c]. They are not listed.
  void issue_calls_at_once(CallId first, CallId end, std::span<const Nanos> unstalled, Nanos late);

  [[nodiscard]] bool listing() const { return listing_; }
  /// When the stream has done all that was issued to it.
  [[nodiscard]] Nanos ready(StreamId stream) const { return ready_[at(stream)]; }

  // Ends by extended position.
  [[nodiscard]] Nanos call_end(std::int32_t q) const {
    return q < calls_ ? then_.call_end[at(q)] - period_before_ : now_.call_end[at(q - calls_)];
  }
  [[nodiscard]] Nanos out_end(std::int32_t j) const {
    return j < outs_ ? then_.out_end[at(j)] - period_before_ : now_.out_end[at(j - outs_)];
  }

  // Of this iteration.
  [[nodiscard]] Nanos start_of(CallId call) const { return now_.call_start[at(call)]; }
  [[nodiscard]] Nanos end_of(CallId call) const { return now_.call_end[at(call)]; }
  [[nodiscard]] Nanos host_end(CallId call) const { return now_.host_end[at(call)]; }
  [[nodiscard]] Nanos in_end(std::int32_t in) const { return now_.in_end[at(in)]; }
  [[nodiscard]] const IterationTimes& times() const { return now_; }

  // Of the one before; `times_before` counts from that one's own time 0.
  [[nodiscard]] Nanos host_end_before(CallId call) const {
    return then_.host_end[at(call)] - period_before_;
  }
  [[nodiscard]] Nanos in_end_before(std::int32_t in) const {
    return then_.in_end[at(in)] - period_before_;
  }
  [[nodiscard]] const IterationTimes& times_before() const { return then_; }

  enum class Kind : std::uint8_t { call, out, in, host };
  /// A start of this iteration depended on the end of something of the iteration before.
  void add_dependency(Nanos start, Kind kind, std::int32_t index) {
    dependencies_.push_back({start, kind, index});
  }
  /// Would the same list have the same times once more? Then it has them for ever: the times are a
  /// fixed point of the list, and the rate of a fixed point is that of the long run from any start
  /// (follow what each step waits for longest: the way ends in a cycle, whose mean is the period).
  [[nodiscard]] bool repeat() const;

  /// The steps of this iteration, with their waits.
  void list(const TimingProblem& problem, std::vector<Step>& steps) {
    list_.resolve(problem, steps);
  }

 private:
  void push(StepKind kind, StreamId stream, std::int32_t id, Nanos start, Nanos duration,
            const ExtendedWaits& waits) {
    if (first_start_[at(stream)] == Nanos::max()) first_start_[at(stream)] = start;
    ready_[at(stream)] = start + duration;
    if (listing_) add_to_list(kind, stream, id, start, duration, waits);
  }
  void add_to_list(StepKind kind, StreamId stream, std::int32_t id, Nanos start, Nanos duration,
                   const ExtendedWaits& waits);

  struct Dependency {
    Nanos start{};
    Kind kind = Kind::call;
    std::int32_t index = 0;
  };

  const StreamTable& table_;
  std::int32_t calls_ = 0;
  std::int32_t outs_ = 0;
  IterationTimes then_;
  IterationTimes now_;
  Nanos period_before_{};
  std::array<Nanos, kMaxStreams> ready_{};
  std::array<Nanos, kMaxStreams> ready_before_{};  ///< at the start of the iteration
  std::array<Nanos, kMaxStreams> first_start_{};   ///< in this iteration; Nanos::max(): none
  std::vector<Dependency> dependencies_;
  bool listing_ = false;
  StepList list_;
};

}  // namespace tidepool
