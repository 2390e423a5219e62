#include "lower/timing/copies_in.h"

#include <algorithm>
#include <limits>

namespace tidepool {

void CopiesIn::begin(const TimingProblem& problem, const TimingLimits& limits) {
  p_ = &problem;
  limits_ = limits;
  queue_.begin(problem);
  room_.begin(problem, limits.load_limit);
  issued_.resize(problem.ins.size());
  last_for_.resize(problem.calls.size());
}

void CopiesIn::begin_pass() {
  queue_.begin_pass();
  room_.begin_pass(steps_.times_before());
  if (limits_.lead != Nanos::max()) {
    predict_latest_starts(*p_, steps_.times_before(), latest_start_);
  }
  std::fill(issued_.begin(), issued_.end(), 0);
  std::fill(last_for_.begin(), last_for_.end(), kNone);
  retry_at_ = 0;
  next_triggered_ = 0;
  knows_call_ = knows_out_ = kNone;
}

bool CopiesIn::issue_free(CallId c) {
  // Others may go before what can wait, and before what is not on the host yet; room is kept for
  // what they pass by.
  const Nanos end_of_call = may_wait_until(c);
  // How much later than in the pass before.
  const Nanos late = steps_.ready(table_.compute) -
                     (c == 0 ? Nanos{0} : steps_.times_before().call_end[at(c - 1)]);
  passed_by_.clear();
  CallId retry = InQueue::kNever;
  std::size_t before = queue_.first();  // the last one passed by
  for (std::size_t k = queue_.first(); k < queue_.end() && passed_by_.size() < kPassedBy;
       k = queue_.after(k)) {
    const std::int32_t i = queue_.copy_at(k);
    const TimedIn& in = p_->ins[at(i)];
    const bool due = in.call == c;
    if (!due && (!limits_.prefetch || steps_.ready(table_.in) >= end_of_call)) {
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
    if (!due && ready && !room_.has_room(i, c, passed_by_)) {
      retry = std::min<CallId>(retry, room_.no_room_at(i) + 1);
      break;
    }
    const Choice choice = ready ? earliest(in, c, not_before) : Choice{};
    if (due && !choice.found()) return false;
    if (ready && !choice.found()) {
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
    issue(i, c, choice);
    room_.take(in, c);
    queue_.remove(k, before);
  }
  retry_at_ = retry;
  return true;
}

/// Those whose trigger is reached, in the order of their triggers; what is due goes first when the
/// memory that others wait for is not there yet.
bool CopiesIn::issue_triggered(CallId c) {
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
    if (choice.found()) {
      issue(i, c, choice);
      retry_at_ = 0;  // one of the same tensor may be ready now
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

/// See Note [Time pass]. The copy-in overlaps every call after `call`, and what is still being
/// copied out after copy-out `out`; for each candidate call the copies out that must be over
/// follow.
CopiesIn::Choice CopiesIn::earliest(const TimedIn& in, CallId position, Nanos not_before) const {
  const std::int32_t here = p_->call_count() + position;
  const std::int32_t least_call = std::max({knows_call_, in.after_call, here - kWindow});
  std::int32_t out = std::max(knows_out_, in.after_out);
  Nanos from = steps_.ready(table_.in);
  if (in.after_host_call != kNone) from = std::max(from, steps_.host_end(in.after_host_call));
  if (out != kNone) from = std::max(from, steps_.out_end(out));

  std::int32_t best_call = 0;
  std::int32_t best_out = 0;
  Nanos best_start = Nanos::max();
  Bytes freed_needed = std::numeric_limits<Bytes>::min();
  // What is due here is part of the static load behind this call only.
  for (std::int32_t call = here - 1; call >= least_call; --call) {
    const std::int32_t q = call + 1;
    const Bytes load =
        q == here ? load_.of(position) - p_->calls[at(position)].allocates : load_.of_extended(q);
    if (load + in.bytes > limits_.load_limit) break;
    freed_needed = std::max(
        freed_needed, p_->freed[at(p_->outs_before(q))] + load + in.bytes - limits_.load_limit);
    while (p_->freed[at(out + 1)] < freed_needed) ++out;
    const Nanos others = out == kNone ? from : std::max(from, steps_.out_end(out));
    const Nanos over = steps_.call_end(call);
    const Nanos start = std::max(others, over);
    if (start < best_start) {
      best_call = call;
      best_out = out;
      best_start = start;
    }
    if (over <= std::max(others, not_before)) break;
  }
  return {best_call, best_out, best_start};
}

void CopiesIn::issue(std::int32_t i, CallId c, const Choice& choice) {
  const TimedIn& in = p_->ins[at(i)];
  const std::int32_t n = p_->call_count();
  ExtendedWaits waits;
  if (choice.call > knows_call_) {
    waits.call = knows_call_ = choice.call;
    if (choice.call < n) {
      steps_.add_dependency(choice.start, IssuedSteps::Kind::call, choice.call);
    }
  }
  if (choice.out > knows_out_) {
    waits.out = knows_out_ = choice.out;
    if (choice.out < p_->out_count()) {
      steps_.add_dependency(choice.start, IssuedSteps::Kind::out, choice.out);
    }
  }
  if (in.after_host_call != kNone) waits.host = n + in.after_host_call;
  issued_[at(i)] = 1;
  steps_.issue_in(i, choice.start, in.time, waits);
  last_for_[at(in.call)] = i;
  load_.add_copy_in(in, choice.call, c);
}

}  // namespace tidepool
