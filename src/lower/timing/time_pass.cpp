#include "lower/timing/time_pass.h"

#include <algorithm>

namespace tidepool {

bool TimePass::run_and_list(const TimingProblem& problem, const TimingLimits& limits,
                            std::vector<Step>& steps) {
  const bool feasible = make_passes(problem, limits, true);
  if (feasible) steps_.list(problem, steps);
  return feasible;
}

bool TimePass::make_passes(const TimingProblem& problem, const TimingLimits& limits, bool listing) {
  p_ = &problem;
  load_limit_ = limits.load_limit;
  steps_.begin(problem, listing);
  plain_calls_.find(problem, steps_.times().call_end);
  load_.begin(problem);
  copies_in_.begin(problem, limits);
  constexpr int kPasses = 2;
  for (int i = 0; i < kPasses; ++i) {
    if (!make_pass()) return false;
  }
  settled_ = steps_.repeat();
  return true;
}

bool TimePass::make_pass() {
  steps_.begin_iteration();
  load_.begin_iteration();
  plain_calls_.begin_pass();
  copies_in_.begin_pass();
  compute_knows_out_ = kNone;
  const CallId calls = p_->call_count();
  for (CallId c = 0; c < calls; ++c) {
    c = pass_plain_calls(c);
    if (c == calls) break;
    load_.reach(c);
    stuck_ = c;
    if (!copies_in_.issue_before(c)) return false;
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

/// Makes plain calls from this one on, all at once, as long as they start at once and no copy-in
/// can be issued before them. Returns the first other one.
CallId TimePass::pass_plain_calls(CallId first) {
  CallId end = plain_calls_.end_of_stretch(first);
  if (end == first || steps_.listing() || !p_->triggered.empty()) return first;
  const Nanos late = steps_.ready(table_.compute) - plain_calls_.unstalled()[at(first)];
  end = copies_in_.first_possible(plain_calls_, first, end, late);
  // See issue_device_call: up to this load nothing more has to be copied out.
  const Bytes out_before = p_->freed[at(p_->out_count() + p_->calls[at(first)].outs_before)];
  const Bytes most =
      load_limit_ + std::min<Bytes>(p_->freed[at(compute_knows_out_ + 1)] - out_before, 0);
  end = load_.reach_up_to(first, end, most);
  if (end > first) steps_.issue_calls_at_once(first, end, plain_calls_.unstalled(), late);
  return end;
}

bool TimePass::issue_device_call(CallId c) {
  const TimedCall& call = p_->calls[at(c)];
  const Bytes load = load_.of(c);
  if (load > load_limit_) return false;
  const std::int32_t outs = p_->out_count();
  std::int32_t out = std::max(compute_knows_out_, call.needs_out);
  const Bytes freed_needed = p_->freed[at(outs + call.outs_before)] + load - load_limit_;
  while (p_->freed[at(out + 1)] < freed_needed) ++out;
  ExtendedWaits waits;
  Nanos start = steps_.ready(table_.compute);
  if (out > compute_knows_out_) {
    waits.out = compute_knows_out_ = out;
    start = std::max(start, steps_.out_end(out));
  }
  if (const std::int32_t in = copies_in_.last_for(c); in != kNone) {
    waits.in = in;
    start = std::max(start, steps_.in_end(in));
  }
  if (waits.out != kNone && waits.out < outs) {
    steps_.add_dependency(start, IssuedSteps::Kind::out, waits.out);
  }
  steps_.issue_device_call(c, start, call.time, waits);
  return true;
}

void TimePass::issue_host_call(CallId c) {
  ExtendedWaits waits;
  Nanos start = steps_.ready(table_.host);
  const auto first =
      std::lower_bound(p_->host_waits.begin(), p_->host_waits.end(), c,
                       [](const HostWait& wait, CallId call) { return wait.call < call; });
  const auto end = std::find_if(first, p_->host_waits.end(),
                                [c](const HostWait& wait) { return wait.call != c; });
  for (auto wait = first; wait != end; ++wait) {
    if (wait->out != kNone) {
      waits.out = std::max(waits.out, wait->out);
      start = std::max(start, steps_.out_end(wait->out));
    } else {  // the list knows which of them is the last
      start = std::max(start,
                       wait->previous ? steps_.in_end_before(wait->in) : steps_.in_end(wait->in));
    }
  }
  for (auto wait = first; wait != end; ++wait) {
    if (!wait->previous) continue;
    if (wait->out != kNone) steps_.add_dependency(start, IssuedSteps::Kind::out, wait->out);
    if (wait->in != kNone) steps_.add_dependency(start, IssuedSteps::Kind::in, wait->in);
  }
  steps_.issue_host_call(c, start, p_->calls[at(c)].time, waits);
}

void TimePass::issue_outs(CallId c) {
  const std::int32_t end =
      c + 1 < p_->call_count() ? p_->calls[at(c) + 1].outs_before : p_->out_count();
  for (std::int32_t j = p_->calls[at(c)].outs_before; j < end; ++j) {
    const TimedOut& out = p_->outs[at(j)];
    ExtendedWaits waits;
    waits.call = p_->call_count() + c;
    Nanos start = std::max(steps_.ready(table_.out), steps_.end_of(c));
    if (out.host_reader != kNone) {
      waits.host = out.host_reader;  // of the previous iteration: it read the same host bytes
      start = std::max(start, steps_.host_end_before(out.host_reader));
      steps_.add_dependency(start, IssuedSteps::Kind::host, out.host_reader);
    }
    steps_.issue_out(j, start, out.time, waits);
  }
}

}  // namespace tidepool
