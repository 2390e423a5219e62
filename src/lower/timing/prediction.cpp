#include "lower/timing/prediction.h"

#include <algorithm>

#include "base/at.h"

namespace tidepool {

void IterationTimes::resize(const TimingProblem& problem) {
  for (auto* per_call : {&call_start, &call_end, &host_end}) {
    per_call->resize(problem.calls.size());
  }
  out_end.resize(problem.outs.size());
  in_end.resize(problem.ins.size());
}

Nanos predict_unstalled(const TimingProblem& problem, IterationTimes& times) {
  Nanos now{0};
  for (CallId c = 0; c < problem.call_count(); ++c) {
    const TimedCall& call = problem.calls[at(c)];
    times.call_start[at(c)] = now;
    if (call.on_device) now += call.time;
    times.call_end[at(c)] = now;
    times.host_end[at(c)] = now;
  }
  Nanos out_ready{0};
  for (std::size_t j = 0; j < problem.outs.size(); ++j) {
    const TimedOut& out = problem.outs[j];
    out_ready = std::max(out_ready, times.call_end[at(out.call)]) + out.time;
    times.out_end[j] = out_ready;
  }
  for (std::size_t i = 0; i < problem.ins.size(); ++i) {
    times.in_end[i] = times.call_start[at(problem.ins[i].call)];
  }
  return now;
}

/// Calls and copies out are both in order of time, so each range ends where the one before did, or
/// later.
void predict_occupied(const TimingProblem& problem, const IterationTimes& times,
                      std::vector<Bytes>& in_flight, LoadCurve& occupied) {
  const std::int32_t n = problem.call_count();
  in_flight.assign(at(n) + 1, 0);
  const Nanos period = times.call_end[at(n - 1)];
  const auto could_start = [&times](CallId c) {
    return c == 0 ? Nanos{0} : times.call_end[at(c - 1)];
  };
  CallId end = 0;       // first call that could start after the copy is over
  CallId next_end = 0;  // the same in the next iteration
  for (std::size_t j = 0; j < problem.outs.size(); ++j) {
    const TimedOut& out = problem.outs[j];
    const Nanos over = times.out_end[j];
    end = std::max<CallId>(end, out.call + 1);
    while (end < n && could_start(end) < over) ++end;
    in_flight[at(out.call + 1)] += out.bytes;
    if (end < n) {
      in_flight[at(end)] -= out.bytes;
      continue;
    }
    while (next_end < n && could_start(next_end) + period < over) ++next_end;
    const CallId last = std::min(next_end, out.call);
    if (last > 0) {
      in_flight[0] += out.bytes;
      in_flight[at(last)] -= out.bytes;
    }
  }
  // A copy-in without a trigger that is early takes no memory that one with a trigger will need.
  for (const std::int32_t i : problem.triggered) {
    const TimedIn& in = problem.ins[at(i)];
    in_flight[at(in.trigger)] += in.bytes;
    in_flight[at(in.call) + 1] -= in.bytes;
  }
  occupied.resize(at(n));
  std::vector<Bytes>& bytes = occupied.values();
  Bytes sum = 0;  // in_flight has differences
  for (std::size_t c = 0; c < bytes.size(); ++c) {
    sum += in_flight[c];
    bytes[c] = problem.static_load[c] + sum;
  }
  occupied.built();
}

void predict_latest_starts(const TimingProblem& problem, const IterationTimes& times,
                           std::vector<Nanos>& latest) {
  latest.resize(problem.free_ins.size());
  Nanos next = Nanos::max();
  for (std::size_t k = latest.size(); k-- > 0;) {
    const TimedIn& in = problem.ins[at(problem.free_ins[k])];
    next = std::min(next, times.call_start[at(in.call)]) - in.time;
    latest[k] = next;
  }
}

}  // namespace tidepool
