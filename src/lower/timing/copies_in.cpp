// When copies in are issued: a part of TimePass.
#include <algorithm>
#include <limits>

#include "lower/timing/time_pass.h"

namespace tidepool {

void TimePass::begin_with(std::size_t next) {
  next_in_ = next;
  next_due_ = next < p_->free_ins.size() ? p_->ins[at(p_->free_ins[next])].call : kNever;
  retry_at_ = 0;
}

/// False where `issue_copies_in` would find nothing to do, as it mostly does. The pass that lists
/// skips nothing: tests compare the two.
bool TimePass::may_issue_copies_in(CallId c) const {
  if (listing_) return true;
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
    if (choice.found()) {
      issue_in(i, c, choice);
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

  std::int32_t best_call = 0;
  std::int32_t best_out = 0;
  Nanos best_start = Nanos::max();
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
    if (start < best_start) {
      best_call = call;
      best_out = out;
      best_start = start;
    }
    if (over <= std::max(others, not_before)) break;
  }
  return {best_call, best_out, best_start};
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

}  // namespace tidepool
