#include "lower/timing/time_pass.h"

#include <algorithm>
#include <limits>

namespace tidepool {

bool TimePass::run(const TimingProblem& problem, const TimingLimits& limits) {
  begin(problem, limits);
  ready_.fill(predict_unstalled(problem, now_));
  find_events();
  std::copy(problem.static_load.begin(), problem.static_load.end(), load_.begin());
  constexpr int kPasses = 2;
  for (int i = 0; i < kPasses; ++i) {
    predict_occupied(problem, now_, in_flight_, occupied_);
    if (limits.lead != Nanos::max()) predict_latest_starts(problem, now_, latest_start_);
    begin_pass();
    if (!make_pass()) return false;
  }
  find_whether_settled();
  return true;
}

bool TimePass::run_and_list(const TimingProblem& problem, const TimingLimits& limits,
                            std::vector<Step>& steps) {
  listing_ = true;
  const bool feasible = run(problem, limits);
  listing_ = false;
  if (feasible) list_.resolve(problem, steps);
  return feasible;
}

void TimePass::begin(const TimingProblem& problem, const TimingLimits& limits) {
  p_ = &problem;
  limits_ = limits;
  const auto n = at(calls());
  then_.resize(problem);
  now_.resize(problem);
  load_.resize(n);
  previous_load_.resize(n);
  ends_.resize(n + 2);
  no_room_.resize(problem.ins.size());
  room_.resize(problem.ins.size());
  issued_.resize(problem.ins.size());
  after_.resize(problem.free_ins.size());
  needs_in_.resize(n);
}

/// The pass just made becomes the previous iteration.
void TimePass::begin_pass() {
  shift_ = ready_[at(table_.compute)];
  std::swap(then_, now_);
  std::swap(load_, previous_load_);
  for (Nanos& ready : ready_) ready -= shift_;
  ready_before_ = ready_;
  first_start_.fill(Nanos::max());
  std::fill(ends_.begin(), ends_.end(), 0);
  std::fill(no_room_.begin(), no_room_.end(), kNone);
  std::fill(room_.begin(), room_.end(), Room{});
  additions_ = 0;
  std::fill(issued_.begin(), issued_.end(), 0);
  std::fill(needs_in_.begin(), needs_in_.end(), kNone);
  early_ = 0;
  for (std::size_t k = 0; k < after_.size(); ++k) after_[k] = k + 1;
  next_triggered_ = 0;
  begin_with(0);
  compute_knows_out_ = in_knows_call_ = in_knows_out_ = kNone;
  dependencies_.clear();
  list_.clear();
}

void TimePass::find_events() {
  const auto n = at(calls());
  unstalled_.resize(n + 1);
  unstalled_[0] = Nanos{0};
  std::copy(now_.call_end.begin(), now_.call_end.end(), unstalled_.begin() + 1);
  is_event_.assign(n + 2, 0);
  for (const TimedOut& out : p_->outs) is_event_[at(out.call)] = 1;
  for (const TimedIn& in : p_->ins) is_event_[at(in.call)] = is_event_[at(in.call) + 1] = 1;
  events_.clear();
  for (CallId c = 0; c < calls(); ++c) {
    const TimedCall& call = p_->calls[at(c)];
    if (is_event_[at(c)] != 0 || !call.on_device || call.needs_out != kNone) events_.push_back(c);
  }
  events_.push_back(calls());
}

/// Makes plain calls from this one on, all at once, as long as they start at once and no copy-in
/// can be issued before them. Returns the first other one.
CallId TimePass::pass_plain_calls(CallId first) {
  while (events_[next_event_] < first) ++next_event_;
  CallId end = events_[next_event_];
  if (end == first || listing_ || !p_->triggered.empty()) return first;
  const Nanos delta = ready_[at(table_.compute)] - unstalled_[at(first)];
  if (next_due_ != kNever) {
    // See may_issue_copies_in.
    const auto from = unstalled_.begin() + std::max(first, retry_at_);
    const auto to = unstalled_.begin() + end;
    if (from < to) {
      const auto may = table_.in == table_.out
                           ? from
                           : std::upper_bound(from + 1, to + 1, ready_[at(table_.in)] - delta) - 1;
      end = static_cast<CallId>(may - unstalled_.begin());
    }
  }
  // See issue_device_call: up to this load nothing more has to be copied out.
  const Bytes out_before = p_->freed[at(outs() + p_->calls[at(first)].outs_before)];
  const Bytes plain_load = limits_.load_limit - early_ +
                           std::min<Bytes>(p_->freed[at(compute_knows_out_ + 1)] - out_before, 0);
  CallId c = first;
  for (; c < end && p_->static_load[at(c)] <= plain_load; ++c) {
    load_[at(c)] = p_->static_load[at(c)] + early_;
  }
  end = c;
  if (end == first) return first;
  for (c = first; c < end; ++c) now_.call_start[at(c)] = unstalled_[at(c)] + delta;
  for (c = first; c < end; ++c) now_.call_end[at(c)] = unstalled_[at(c) + 1] + delta;
  for (c = first; c < end; ++c) now_.host_end[at(c)] = unstalled_[at(c) + 1] + delta;
  if (first_start_[at(table_.compute)] == Nanos::max()) {
    first_start_[at(table_.compute)] = now_.call_start[at(first)];
  }
  ready_[at(table_.compute)] = now_.call_end[at(end) - 1];
  return end;
}

bool TimePass::make_pass() {
  next_event_ = 0;
  for (CallId c = 0; c < calls(); ++c) {
    c = pass_plain_calls(c);
    if (c == calls()) break;
    early_ -= ends_[at(c)];
    load_[at(c)] = p_->static_load[at(c)] + early_;
    stuck_ = c;
    if (!p_->triggered.empty() && !issue_triggered(c)) return false;
    if (may_issue_copies_in(c) && !issue_copies_in(c)) return false;
    if (p_->calls[at(c)].on_device) {
      if (!issue_device_call(c)) return false;
    } else {
      issue_host_call(c);
    }
    issue_outs(c);
  }
  stuck_ = kNone;
  return true;
}

void TimePass::push(StepKind kind, StreamId stream, std::int32_t id, Nanos start, Nanos duration,
                    const ExtendedWaits& waits) {
  if (first_start_[at(stream)] == Nanos::max()) first_start_[at(stream)] = start;
  ready_[at(stream)] = start + duration;
  if (!listing_) return;
  Step step;
  step.kind = kind;
  step.stream = stream;
  step.id = id;
  step.duration = duration;
  step.start = start;
  step.end = start + duration;
  list_.add(step, waits);
}

bool TimePass::issue_device_call(CallId c) {
  const TimedCall& call = p_->calls[at(c)];
  const Bytes load = load_[at(c)];
  if (load > limits_.load_limit) return false;
  std::int32_t out = std::max(compute_knows_out_, call.needs_out);
  const Bytes freed_needed = p_->freed[at(outs() + call.outs_before)] + load - limits_.load_limit;
  while (p_->freed[at(out + 1)] < freed_needed) ++out;
  ExtendedWaits waits;
  Nanos start = ready_[at(table_.compute)];
  if (out > compute_knows_out_) {
    waits.out = compute_knows_out_ = out;
    start = std::max(start, out_end(out));
  }
  if (needs_in_[at(c)] != kNone) {
    waits.in = needs_in_[at(c)];
    start = std::max(start, now_.in_end[at(waits.in)]);
  }
  if (waits.out != kNone && waits.out < outs()) {
    dependencies_.push_back({start, Dependency::out, waits.out});
  }
  now_.call_start[at(c)] = start;
  push(StepKind::op, table_.compute, c, start, call.time, waits);
  now_.call_end[at(c)] = now_.host_end[at(c)] = start + call.time;
  return true;
}

void TimePass::issue_host_call(CallId c) {
  ExtendedWaits waits;
  Nanos start = ready_[at(table_.host)];
  const auto first =
      std::lower_bound(p_->host_waits.begin(), p_->host_waits.end(), c,
                       [](const HostWait& wait, CallId call) { return wait.call < call; });
  const auto end = std::find_if(first, p_->host_waits.end(),
                                [c](const HostWait& wait) { return wait.call != c; });
  for (auto wait = first; wait != end; ++wait) {
    if (wait->out != kNone) {
      waits.out = std::max(waits.out, wait->out);
      start = std::max(start, out_end(wait->out));
    } else {  // the list knows which of them is the last
      start = std::max(
          start, wait->previous ? then_.in_end[at(wait->in)] - shift_ : now_.in_end[at(wait->in)]);
    }
  }
  for (auto wait = first; wait != end; ++wait) {
    if (!wait->previous) continue;
    if (wait->out != kNone) dependencies_.push_back({start, Dependency::out, wait->out});
    if (wait->in != kNone) dependencies_.push_back({start, Dependency::in, wait->in});
  }
  const TimedCall& call = p_->calls[at(c)];
  now_.call_start[at(c)] = ready_[at(table_.compute)];
  push(StepKind::op, table_.host, c, start, call.time, waits);
  now_.host_end[at(c)] = start + call.time;
  now_.call_end[at(c)] = ready_[at(table_.compute)];  // for waits on the compute stream up to here
}

void TimePass::issue_outs(CallId c) {
  const std::int32_t end =
      c + 1 < calls() ? p_->calls[at(c) + 1].outs_before : static_cast<std::int32_t>(outs());
  for (std::int32_t j = p_->calls[at(c)].outs_before; j < end; ++j) {
    const TimedOut& out = p_->outs[at(j)];
    ExtendedWaits waits;
    waits.call = calls() + c;
    Nanos start = std::max(ready_[at(table_.out)], now_.call_end[at(c)]);
    if (out.host_reader != kNone) {
      waits.host = out.host_reader;  // of the previous iteration: it read the same host bytes
      start = std::max(start, then_.host_end[at(out.host_reader)] - shift_);
      dependencies_.push_back({start, Dependency::host, out.host_reader});
    }
    push(StepKind::copy_out, table_.out, j, start, out.time, waits);
    now_.out_end[at(j)] = start + out.time;
  }
}

/// Would the same list have the same times once more? Then it has them for ever: the times are a
/// fixed point of the list, and the rate of a fixed point is that of the long run from any start
/// (follow what each step waits for longest: the way ends in a cycle, whose mean is the period).
void TimePass::find_whether_settled() {
  settled_ = true;
  const Nanos period = ready_[at(table_.compute)];
  for (std::size_t s = 0; s < ready_.size(); ++s) {
    if (first_start_[s] == Nanos::max()) continue;
    depends(first_start_[s], ready_before_[s], ready_[s] - period);
  }
  for (const Dependency& d : dependencies_) {
    const auto compare = [&](const std::vector<Nanos>& then, const std::vector<Nanos>& now) {
      depends(d.start, then[at(d.index)] - shift_, now[at(d.index)] - period);
    };
    switch (d.kind) {
      case Dependency::call:
        compare(then_.call_end, now_.call_end);
        break;
      case Dependency::out:
        compare(then_.out_end, now_.out_end);
        break;
      case Dependency::in:
        compare(then_.in_end, now_.in_end);
        break;
      case Dependency::host:
        compare(then_.host_end, now_.host_end);
        break;
    }
  }
}

}  // namespace tidepool
