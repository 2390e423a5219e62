#include "planners/published/dqn/simulator.h"

#include <algorithm>
#include <tuple>

#include "base/at.h"
#include "lower/away_spaces.h"

namespace tidepool::dqn {
namespace {

constexpr Nanos kNotBegun{-1};

}  // namespace

IterationSimulator::IterationSimulator(const Program& program, const AccessIndex& index,
                                       const Machine& machine)
    : program_(program),
      index_(index),
      duplex_(machine.duplex()),
      expander_(program, index, away_spaces(program, machine)),
      problems_(program, machine),
      call_of_(program.ops.size()),
      departure_of_(index.gaps().size(), kNone) {}

SimulatedIteration IterationSimulator::run(const Strategy& strategy,
                                           std::span<const Departure> departures, Bytes limit) {
  SimulatedIteration result;
  if (!expander_.expand(strategy, x_).empty()) return result;
  problems_.make(strategy, x_, p_);
  result.possible = true;
  limit_ = limit;
  find_calls();
  order_outs(strategy, departures);
  set_load();
  find_over();
  carried_.clear();
  pass(result);
  if (!carried_.empty()) pass(result);
  return result;
}

Nanos IterationSimulator::out_end(GapId gap) const {
  for (const Out& out : outs_) {
    if (x_.moves[at(p_.outs[at(out.id)].id)].gap == gap) return out_end_[at(out.id)];
  }
  return kNotBegun;
}

void IterationSimulator::find_calls() {
  owner_.resize(x_.calls.size());
  OpId op = kNone;
  for (std::size_t c = x_.calls.size(); c-- > 0;) {
    if (!x_.calls[c].clone) {
      op = x_.calls[c].op;
      call_of_[at(op)] = c;
    }
    owner_[c] = op;
  }
}

void IterationSimulator::order_outs(const Strategy& strategy,
                                    std::span<const Departure> departures) {
  for (std::size_t i = 0; i < departures.size(); ++i) {
    departure_of_[at(departures[i].gap)] = static_cast<std::int32_t>(i);
  }
  outs_.clear();
  const auto count = static_cast<std::int32_t>(departures.size());
  for (std::int32_t j = 0; j < p_.out_count(); ++j) {
    const TimedOut& timed = p_.outs[at(j)];
    const GapId gap = x_.moves[at(timed.id)].gap;
    Out out{timed.call, true, count + j, j};
    const std::int32_t decided = gap == kNone ? kNone : departure_of_[at(gap)];
    if (decided != kNone && strategy.gaps[at(gap)] == Decision::swap) {
      const Departure& departure = departures[at(decided)];
      out.call = std::max(out.call, static_cast<CallId>(call_of_[at(departure.op)]));
      out.at_end = departure.at_end;
      out.order = decided;
    }
    outs_.push_back(out);
  }
  std::ranges::sort(outs_, {}, [](const Out& out) {
    return std::tuple(out.call.value(), out.at_end, out.order);
  });
  for (const Departure& departure : departures) departure_of_[at(departure.gap)] = kNone;
}

/// What is there beside prefetched bytes: also until a later decision's copy out begins. Nothing is
/// brought back before it has left.
void IterationSimulator::set_load() {
  base_ = p_.static_load;
  for (const Out& out : outs_) {
    const TimedOut& timed = p_.outs[at(out.id)];
    for (CallId c = timed.call + 1; c <= out.call; ++c) base_[at(c)] += timed.bytes;
  }
  for (TimedIn& in : p_.ins) {
    const GapId id = x_.moves[at(in.id)].gap;
    if (id == kNone || index_.gaps()[at(id)].wraps) continue;
    const auto left = static_cast<CallId>(call_of_[at(index_.gaps()[at(id)].from)]);
    in.not_before = std::max<CallId>(in.not_before, left + 1);
  }
}

void IterationSimulator::find_over() {
  over_.assign(program_.ops.size(), 0);
  std::size_t in = 0;
  for (CallId c = 0; c < p_.call_count(); ++c) {
    Bytes load = base_[at(c)];
    for (; in < p_.ins.size() && p_.ins[in].call == c; ++in) load += p_.ins[in].bytes;
    if (p_.calls[at(c)].on_device && load > limit_) over_[at(owner_[at(c)])] = 1;
  }
}

void IterationSimulator::pass(SimulatedIteration& result) {
  const std::size_t calls = p_.calls.size();
  load_ = base_;
  start_.resize(calls);
  end_.resize(calls);
  out_end_.assign(p_.outs.size(), kNotBegun);
  arrival_.assign(p_.ins.size(), kNotBegun);
  flying_ = carried_;
  first_flying_ = next_out_ = first_in_ = 0;
  in_flight_ = 0;
  now_ = in_free_ = Nanos{0};
  out_free_ = carried_.empty() ? Nanos{0} : carried_.back().end;
  if (!duplex_) in_free_ = out_free_;
  for (const Copy& copy : carried_) in_flight_ += copy.bytes;
  result.blocked = kNone;
  for (CallId c = 0; c < static_cast<CallId>(calls); ++c) {
    const TimedCall& call = p_.calls[at(c)];
    begin_needed(c);
    if (call.on_device) {
      if (!await_memory(c) && result.blocked == kNone) result.blocked = owner_[at(c)];
      prefetch(c);
    }
    start_[at(c)] = now_;
    begin_outs(c, false);
    if (call.on_device) now_ += call.time;
    end_[at(c)] = now_;
    begin_outs(c, true);
  }
  carried_.clear();
  for (std::size_t i = first_flying_; i < flying_.size(); ++i) {
    if (flying_[i].end > now_) carried_.push_back({flying_[i].end - now_, flying_[i].bytes});
  }
  result.time = std::max({now_, p_.out_time, p_.in_time});
  if (!duplex_) result.time = std::max(result.time, p_.out_time + p_.in_time);
}

void IterationSimulator::forget_ended() {
  while (first_flying_ < flying_.size() && flying_[first_flying_].end <= now_) {
    in_flight_ -= flying_[first_flying_++].bytes;
  }
}

/// False where no copy in flight makes enough room.
bool IterationSimulator::await_memory(CallId call) {
  const Bytes load = load_[at(call)];
  forget_ended();
  while (std::min(load, limit_) + in_flight_ > limit_ && in_flight_ > 0) {
    now_ = std::max(now_, flying_[first_flying_].end);
    forget_ended();
  }
  return load <= limit_;
}

/// Copies in that the call needs and that have not begun, and waits for all it needs.
void IterationSimulator::begin_needed(CallId call) {
  for (std::size_t i = first_in_; i < p_.ins.size() && p_.ins[i].call <= call; ++i) {
    if (p_.ins[i].call < call) continue;
    if (arrival_[i] == kNotBegun) {
      load_[at(call)] += p_.ins[i].bytes;
      await_memory(call);
      load_[at(call)] -= p_.ins[i].bytes;
      begin_in(i, call);
    }
  }
  for (; first_in_ < p_.ins.size() && p_.ins[first_in_].call <= call; ++first_in_) {
    now_ = std::max(now_, arrival_[first_in_]);
  }
}

Nanos IterationSimulator::source_end(const TimedIn& in) const {
  if (in.after_out < p_.out_count()) return Nanos{0};
  return out_end_[at(in.after_out - p_.out_count())];
}

bool IterationSimulator::may_begin(const TimedIn& in, CallId call) const {
  if (in.not_before > call || in.after_call - p_.call_count() >= call) return false;
  if (in.after_out < p_.out_count()) return true;
  const Nanos end = source_end(in);
  return end != kNotBegun && end <= now_;
}

bool IterationSimulator::stays_within(CallId from, CallId to, Bytes bytes) const {
  const Bytes most = limit_ - bytes;
  for (CallId c = from; c <= to; ++c) {
    if (load_[at(c)] > most && p_.calls[at(c)].on_device) return false;
  }
  return true;
}

/// In the order of reuse; those still on the device are passed over.
void IterationSimulator::prefetch(CallId call) {
  const Nanos until = now_ + p_.calls[at(call)].time;
  for (std::size_t i = first_in_; i < p_.ins.size() && in_free_ < until; ++i) {
    const TimedIn& in = p_.ins[i];
    if (arrival_[i] != kNotBegun || !may_begin(in, call)) continue;
    if (load_[at(call)] + in_flight_ + in.bytes > limit_) return;
    if (!stays_within(call, in.call, in.bytes)) return;
    begin_in(i, call);
  }
}

void IterationSimulator::begin_in(std::size_t i, CallId from) {
  const TimedIn& in = p_.ins[i];
  Nanos start = std::max({now_, in_free_, source_end(in)});
  if (!duplex_) start = std::max(start, out_free_);
  in_free_ = arrival_[i] = start + in.time;
  if (!duplex_) out_free_ = in_free_;
  for (CallId c = from; c <= in.call; ++c) load_[at(c)] += in.bytes;
}

void IterationSimulator::begin_outs(CallId call, bool at_end) {
  for (; next_out_ < outs_.size(); ++next_out_) {
    const Out& out = outs_[next_out_];
    if (out.call != call || out.at_end != at_end) return;
    const TimedOut& timed = p_.outs[at(out.id)];
    Nanos start = std::max(now_, out_free_);
    if (!duplex_) start = std::max(start, in_free_);
    out_free_ = out_end_[at(out.id)] = start + timed.time;
    if (!duplex_) in_free_ = out_free_;
    flying_.push_back({out_free_, timed.bytes});
    in_flight_ += timed.bytes;
  }
}

}  // namespace tidepool::dqn
