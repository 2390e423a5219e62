#include "lower/time_pass.h"

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

void TimePass::begin_with(std::size_t next) {
  next_in_ = next;
  next_due_ = next < p_->free_ins.size() ? p_->ins[at(p_->free_ins[next])].call : kNever;
  retry_at_ = 0;
}

/// False where `issue_copies_in` would find nothing to do, as it mostly does.
bool TimePass::may_issue_copies_in(CallId c) const {
  if (next_due_ == c) return true;
  if (next_due_ == kNever || c < retry_at_) return false;
  return ready_[at(table_.in)] < may_wait_until(c);
}

/// The end of the call: what would not start before then starts as early when it is issued later,
/// and takes memory for less long. Nanos::max() where a copy out could go first, on a link that
/// takes turns, and where the call is none of the device.
Nanos TimePass::may_wait_until(CallId c) const {
  const TimedCall& call = p_->calls[at(c)];
  if (!call.on_device || table_.in == table_.out) return Nanos::max();
  return ready_[at(table_.compute)] + call.time;
}

bool TimePass::issue_copies_in(CallId c) {
  // Others may go before what can wait, and before what is not on the host yet; room is kept for
  // what they pass by.
  const std::vector<std::int32_t>& list = p_->free_ins;
  const Nanos now = ready_[at(table_.compute)];
  const Nanos end_of_call = may_wait_until(c);
  // How much later than in the pass before.
  const Nanos late = now - (c == 0 ? Nanos{0} : then_.call_end[at(c - 1)]);
  passed_by_.clear();
  CallId retry = kNever;
  std::size_t before = next_in_;  // the last one passed by
  for (std::size_t k = next_in_; k < list.size() && passed_by_.size() < kPassedBy; k = after_[k]) {
    const std::int32_t i = list[k];
    const TimedIn& in = p_->ins[at(i)];
    const bool due = in.call == c;
    if (!due && (!limits_.prefetch || ready_[at(table_.in)] >= end_of_call)) {
      retry = c + 1;
      break;
    }
    const Nanos not_before =
        limits_.lead == Nanos::max() ? kLongAgo : latest_start_[k] + late - limits_.lead;
    if (!due && not_before >= end_of_call) {
      retry = c + 1;
      break;
    }
    const bool ready = in.not_before <= c && (in.before == kNone || issued_[at(in.before)] != 0);
    if (!due && ready && !has_room(i, c)) {
      retry = std::min<CallId>(retry, no_room_[at(i)] + 1);
      break;
    }
    const Choice choice = ready ? earliest(in, c, not_before) : Choice{};
    if (due && !choice.found) return false;
    if (ready && !choice.found) {
      retry = c + 1;
      break;
    }
    if (!due && (!ready || choice.start >= end_of_call)) {
      if (ready) {
        retry = c + 1;
      } else if (in.not_before > c) {
        retry = std::min(retry, in.not_before);
      }  // else it becomes ready when another one is issued
      passed_by_.push_back(i);
      before = k;
      continue;
    }
    issue_in(i, c, choice);
    occupied_.add(at(c), at(in.call) + 1, in.bytes);
    ++additions_;
    if (k == next_in_) {
      begin_with(after_[k]);
    } else {
      after_[before] = after_[k];
    }
  }
  retry_at_ = retry;
  return true;
}

/// Those whose trigger is reached, in the order of their triggers; what is due goes first when the
/// memory that others wait for is not there yet.
bool TimePass::issue_triggered(CallId c) {
  const std::vector<std::int32_t>& list = p_->triggered;
  bool blocked = false;
  for (std::size_t k = next_triggered_; k < list.size(); ++k) {
    const std::int32_t i = list[k];
    const TimedIn& in = p_->ins[at(i)];
    if (in.trigger > c) break;
    if (issued_[at(i)] != 0) continue;
    const bool due = in.call == c;
    if (blocked && !due) continue;
    const Choice choice = earliest(in, c, kLongAgo);
    if (choice.found) {
      issue_in(i, c, choice);
    } else if (due) {
      return false;
    } else {
      blocked = true;
    }
  }
  while (next_triggered_ < list.size() && issued_[at(list[next_triggered_])] != 0) {
    ++next_triggered_;
  }
  return true;
}

/// Until the call that it is for, beside those passed by until theirs.
bool TimePass::has_room(std::int32_t i, CallId from) {
  const TimedIn& in = p_->ins[at(i)];
  const Bytes limit = limits_.load_limit - in.bytes;
  std::int32_t& failed = no_room_[at(i)];
  if (failed >= from && occupied_.at(at(failed)) > limit) return false;
  Bytes beside = 0;
  for (const std::int32_t other : passed_by_) beside += p_->ins[at(other)].bytes;
  Room& known = room_[at(i)];
  if (known.additions == additions_ && beside <= known.beside) return true;
  const Bytes beside_at_first = beside;
  std::size_t position = at(from);
  const auto free_until = [&](std::size_t end) {
    const std::size_t found = occupied_.first_above(position, end, limit - beside);
    if (found < end) failed = static_cast<std::int32_t>(found);
    return found >= end;
  };
  for (const std::int32_t other : passed_by_) {
    const TimedIn& passed = p_->ins[at(other)];
    const std::size_t end = std::min(at(passed.call) + 1, at(in.call));
    if (position < end) {
      if (!free_until(end)) return false;
      position = end;
    }
    beside -= passed.bytes;
  }
  if (position < at(in.call) && !free_until(at(in.call))) return false;
  known = {additions_, beside_at_first};
  return true;
}

/// See Note [Time pass]. The copy-in overlaps every call after `call`, and what is still being
/// copied out after copy-out `out`; for each candidate call the copies out that must be over
/// follow.
TimePass::Choice TimePass::earliest(const TimedIn& in, CallId position, Nanos not_before) const {
  const std::int32_t here = calls() + position;
  const std::int32_t least_call = std::max({in_knows_call_, in.after_call, here - kWindow});
  std::int32_t out = std::max(in_knows_out_, in.after_out);
  Nanos from = ready_[at(table_.in)];
  if (in.after_host_call != kNone) from = std::max(from, now_.host_end[at(in.after_host_call)]);
  if (out != kNone) from = std::max(from, out_end(out));

  Choice best;
  Bytes freed_needed = std::numeric_limits<Bytes>::min();
  // What is due here is part of the static load behind this call only.
  for (std::int32_t call = here - 1; call >= least_call; --call) {
    const std::int32_t q = call + 1;
    const Bytes load =
        q == here ? load_[at(position)] - p_->calls[at(position)].allocates : extended_load(q);
    if (load + in.bytes > limits_.load_limit) break;
    freed_needed = std::max(
        freed_needed, p_->freed[at(p_->outs_before(q))] + load + in.bytes - limits_.load_limit);
    while (p_->freed[at(out + 1)] < freed_needed) ++out;
    const Nanos others = out == kNone ? from : std::max(from, out_end(out));
    const Nanos over = call_end(call);
    const Nanos start = std::max(others, over);
    if (!best.found || start < best.start) best = {call, out, start, true};
    if (over <= std::max(others, not_before)) break;
  }
  return best;
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

void TimePass::issue_in(std::int32_t i, CallId c, const Choice& choice) {
  const TimedIn& in = p_->ins[at(i)];
  const std::int32_t n = calls();
  ExtendedWaits waits;
  if (choice.call > in_knows_call_) {
    waits.call = in_knows_call_ = choice.call;
    if (choice.call < n) dependencies_.push_back({choice.start, Dependency::call, choice.call});
  }
  if (choice.out > in_knows_out_) {
    waits.out = in_knows_out_ = choice.out;
    if (choice.out < outs()) dependencies_.push_back({choice.start, Dependency::out, choice.out});
  }
  if (in.after_host_call != kNone) waits.host = n + in.after_host_call;
  issued_[at(i)] = 1;
  push(StepKind::copy_in, table_.in, i, choice.start, in.time, waits);
  now_.in_end[at(i)] = choice.start + in.time;
  needs_in_[at(in.call)] = i;
  // From after `choice.call` on, until its bytes are part of the static load.
  for (std::int32_t q = choice.call + 1; q < n; ++q) previous_load_[at(q)] += in.bytes;
  for (CallId q = std::max(choice.call + 1 - n, 0); q <= c; ++q) load_[at(q)] += in.bytes;
  early_ += in.bytes;
  ends_[at(in.call) + 1] += in.bytes;
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
  const auto later = [](std::int32_t& latest, std::int32_t in, const std::vector<Nanos>& ends) {
    if (latest == kNone || ends[at(in)] > ends[at(latest)]) latest = in;
  };
  const auto first =
      std::lower_bound(p_->host_waits.begin(), p_->host_waits.end(), c,
                       [](const HostWait& wait, CallId call) { return wait.call < call; });
  const auto end = std::find_if(first, p_->host_waits.end(),
                                [c](const HostWait& wait) { return wait.call != c; });
  for (auto wait = first; wait != end; ++wait) {
    if (wait->out != kNone) {
      waits.out = std::max(waits.out, wait->out);
      start = std::max(start, out_end(wait->out));
    } else if (wait->previous) {
      later(waits.in_previous, wait->in, then_.in_end);
      start = std::max(start, then_.in_end[at(wait->in)] - shift_);
    } else {
      later(waits.in, wait->in, now_.in_end);
      start = std::max(start, now_.in_end[at(wait->in)]);
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
