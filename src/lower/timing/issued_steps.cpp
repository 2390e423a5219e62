#include "lower/timing/issued_steps.h"

#include <algorithm>
#include <utility>

namespace tidepool {

void IssuedSteps::begin(const TimingProblem& problem, bool listing) {
  calls_ = problem.call_count();
  outs_ = problem.out_count();
  listing_ = listing;
  then_.resize(problem);
  now_.resize(problem);
  ready_.fill(predict_unstalled(problem, now_));
}

void IssuedSteps::begin_iteration() {
  period_before_ = ready_[at(table_.compute)];
  std::swap(then_, now_);
  for (Nanos& ready : ready_) ready -= period_before_;
  ready_before_ = ready_;
  first_start_.fill(Nanos::max());
  dependencies_.clear();
  list_.clear();
}

void IssuedSteps::add_to_list(StepKind kind, StreamId stream, std::int32_t id, Nanos start,
                              Nanos duration, const ExtendedWaits& waits) {
  Step step;
  step.kind = kind;
  step.stream = stream;
  step.id = id;
  step.duration = duration;
  step.start = start;
  step.end = start + duration;
  list_.add(step, waits);
}

void IssuedSteps::issue_calls_at_once(CallId first, CallId end, std::span<const Nanos> unstalled,
                                      Nanos late) {
  for (CallId c = first; c < end; ++c) now_.call_start[at(c)] = unstalled[at(c)] + late;
  for (CallId c = first; c < end; ++c) now_.call_end[at(c)] = unstalled[at(c) + 1] + late;
  for (CallId c = first; c < end; ++c) now_.host_end[at(c)] = unstalled[at(c) + 1] + late;
  if (first_start_[at(table_.compute)] == Nanos::max()) {
    first_start_[at(table_.compute)] = now_.call_start[at(first)];
  }
  ready_[at(table_.compute)] = now_.call_end[at(end) - 1];
}

bool IssuedSteps::repeat() const {
  const Nanos period = ready_[at(table_.compute)];
  // What a start depended on must not come later now, and what decided it not earlier.
  const auto same = [](Nanos start, Nanos then, Nanos now) {
    return then == now || (then < start && now <= start);
  };
  for (std::size_t s = 0; s < ready_.size(); ++s) {
    if (first_start_[s] == Nanos::max()) continue;
    if (!same(first_start_[s], ready_before_[s], ready_[s] - period)) return false;
  }
  const auto ends = [](const IterationTimes& times, Kind kind) -> const std::vector<Nanos>& {
    switch (kind) {
      case Kind::call:
        return times.call_end;
      case Kind::out:
        return times.out_end;
      case Kind::in:
        return times.in_end;
      case Kind::host:
        break;
    }
    return times.host_end;
  };
  return std::ranges::all_of(dependencies_, [&](const Dependency& d) {
    return same(d.start, ends(then_, d.kind)[at(d.index)] - period_before_,
                ends(now_, d.kind)[at(d.index)] - period);
  });
}

}  // namespace tidepool
