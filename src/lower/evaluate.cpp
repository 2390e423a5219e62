#include "lower/evaluate.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <tuple>
#include <utility>

namespace tidepool {
namespace {

constexpr Nanos kLongAgo{std::numeric_limits<Nanos::rep>::min() / 4};

template <class T>
std::size_t at(T index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

StreamTable StreamTable::of(const Machine& machine) {
  StreamTable table;
  table.in = machine.duplex() ? 2 : 1;
  table.host = table.in + 1;
  table.streams = {{0, StreamKind::compute}, {0, StreamKind::copy}};
  if (machine.duplex()) table.streams.push_back({0, StreamKind::copy});
  table.streams.push_back({0, StreamKind::host});
  return table;
}

Evaluator::Evaluator(const Program& program, const AccessIndex& index, const Machine& machine)
    : program_(program),
      table_(StreamTable::of(machine)),
      expander_(program, index, machine.host()) {
  for (const Op& op : program.ops) {
    algorithm_start_.push_back(static_cast<std::int32_t>(algorithm_time_.size()));
    for (const Algorithm& a : op.algorithms) {
      algorithm_time_.push_back(a.time);
      algorithm_workspace_.push_back(align_up(a.workspace, machine.alignment()));
    }
  }
  for (const Tensor& t : program.tensors) {
    tensor_bytes_.push_back(align_up(t.bytes, machine.alignment()));
    out_time_.push_back(machine.to_host().time(t.bytes));
    in_time_.push_back(machine.to_device().time(t.bytes));
  }
}

void Evaluator::add_load(CallId from, CallId to, Bytes bytes) {
  // A difference array while the strategy is prepared; summed up at its end.
  static_load_[at(from)] += bytes;
  static_load_[at(to) + 1] -= bytes;
}

/// Load that does not depend on when copies are issued: lives begun by calls, and the part at the
/// head of the iteration of lives that began in the previous one.
void Evaluator::prepare_life(const Life& l) {
  if (l.space != 0) return;
  const Bytes bytes = tensor_bytes_[at(l.tensor)];
  if (l.always) {
    add_load(0, calls_ - 1, bytes);
    return;
  }
  if (l.crosses) add_load(0, end_of(l), bytes);
  if (l.begin_call == kNone) return;
  add_load(l.begin_call, l.crosses ? calls_ - 1 : end_of(l), bytes);
  call_allocates_[at(l.begin_call)] += bytes;
  if (l.end_move != kNone) {
    std::int32_t& needs = call_needs_out_[at(l.begin_call)];
    const std::int32_t out = out_position_[at(l.end_move)] + (l.crosses ? outs_count() : 0);
    needs = std::max(needs, out);
  }
}

void Evaluator::prepare(const Strategy& strategy) {
  calls_ = static_cast<std::int32_t>(x_.calls.size());
  const std::size_t n = x_.calls.size();
  const std::size_t m = x_.moves.size();
  for (auto* v : {&load_, &previous_load_, &in_flight_}) v->resize(n);
  for (auto* v : {&call_start_, &call_end_, &previous_call_end_, &host_end_, &previous_host_end_}) {
    v->resize(n);
  }
  for (auto* v : {&in_end_, &previous_in_end_}) v->resize(m);
  for (auto* v : {&out_end_, &previous_out_end_}) v->resize(x_.outs.size());
  on_device_.resize(n);
  device_call_at_or_before_.resize(n);
  outs_before_.resize(n + 1);
  out_position_.assign(m, kNone);
  call_time_.resize(n);
  call_step_.resize(n);
  move_step_.resize(m);
  call_needs_in_.resize(n);
  call_needs_out_.assign(n, kNone);
  call_allocates_.resize(n);
  static_load_.assign(n + 1, 0);

  CallId last_device = kNone;
  for (CallId c = 0; c < calls_; ++c) {
    const OpId op = x_.calls[at(c)].op;
    const std::size_t a = at(algorithm_start_[at(op)] + strategy.algorithms[at(op)]);
    on_device_[at(c)] = program_.ops[at(op)].place == OpPlace::device ? 1 : 0;
    if (on_device_[at(c)]) last_device = c;
    device_call_at_or_before_[at(c)] = last_device;
    call_time_[at(c)] = algorithm_time_[a];
    call_allocates_[at(c)] = algorithm_workspace_[a];
    add_load(c, c, algorithm_workspace_[a]);
  }
  for (std::int32_t j = 0; j < outs_count(); ++j) out_position_[at(x_.outs[at(j)])] = j;
  for (std::int32_t j = 0; j < outs_count(); ++j) {
    const Move& out = move(x_.outs[at(j)]);
    if (out.barrier == kNone) continue;
    std::int32_t& needs = call_needs_out_[at(out.barrier)];
    needs = std::max(needs, j + (out.barrier_next ? 0 : outs_count()));
  }
  free_ins_.clear();
  triggered_ins_.clear();
  previous_in_.resize(m);
  last_in_.assign(program_.tensors.size(), kNone);
  for (const MoveId id : x_.ins) {
    previous_in_[at(id)] = std::exchange(last_in_[at(move(id).tensor)], id);
    (move(id).trigger == kNone ? free_ins_ : triggered_ins_).push_back(id);
  }
  std::sort(triggered_ins_.begin(), triggered_ins_.end(), [this](MoveId a, MoveId b) {
    const auto key = [this](MoveId id) {
      return std::tuple(trigger_position(id), move(id).call, id);
    };
    return key(a) < key(b);
  });
  std::size_t next = 0;
  for (CallId c = 0; c <= calls_; ++c) {
    while (next < x_.outs.size() && move(x_.outs[next]).call < c) ++next;
    outs_before_[at(c)] = static_cast<std::int32_t>(next);
  }
  out_prefix_.assign(1, 0);
  for (int iteration = 0; iteration < 2; ++iteration) {
    for (const MoveId out : x_.outs) out_prefix_.push_back(out_prefix_.back() + bytes_of(out));
  }
  for (const Life& l : x_.lives) prepare_life(l);
  Bytes live = 0;
  for (std::size_t c = 0; c < n; ++c) {
    live += static_load_[c];
    static_load_[c] = live;
  }
}

/// Before the first pass: the previous iteration as if nothing ever stalled.
void Evaluator::predict_unstalled() {
  Nanos now{0};
  for (CallId c = 0; c < calls_; ++c) {
    call_start_[at(c)] = now;
    if (on_device_[at(c)]) now += call_time_[at(c)];
    call_end_[at(c)] = now;
    host_end_[at(c)] = now;
  }
  Nanos out_ready{0};
  for (std::size_t j = 0; j < x_.outs.size(); ++j) {
    const Move& out = move(x_.outs[j]);
    out_ready = std::max(out_ready, call_end_[at(out.call)]) + out_time_[at(out.tensor)];
    out_end_[j] = out_ready;
  }
  for (const MoveId in : x_.ins) in_end_[at(in)] = call_start_[at(move(in).call)];
  std::copy(static_load_.begin(), static_load_.begin() + calls_, load_.begin());
  ready_.fill(now);
}

/// Bytes still on their way out when each call could start, from the ends known so far: a call that
/// waited for memory in the pass before should not wait again because a copy-in took what the wait
/// had freed. Calls and copies out are both in order of time, so each range ends where the one
/// before did, or later.
void Evaluator::predict_in_flight() {
  std::fill(in_flight_.begin(), in_flight_.end(), 0);
  const Nanos period = call_end_[at(calls_ - 1)];
  const auto could_start = [this](CallId c) { return c == 0 ? Nanos{0} : call_end_[at(c - 1)]; };
  CallId end = 0;       // first call that could start after the copy is over
  CallId next_end = 0;  // the same in the next iteration
  for (std::size_t j = 0; j < x_.outs.size(); ++j) {
    const CallId from = move(x_.outs[j]).call;
    const Bytes bytes = bytes_of(x_.outs[j]);
    end = std::max(end, from + 1);
    while (end < calls_ && could_start(end) < out_end_[j]) ++end;
    if (from + 1 < calls_) in_flight_[at(from + 1)] += bytes;
    if (end < calls_) {
      in_flight_[at(end)] -= bytes;
      continue;
    }
    while (next_end < calls_ && could_start(next_end) + period < out_end_[j]) ++next_end;
    const CallId last = std::min(next_end, from);
    if (last > 0) {
      in_flight_[0] += bytes;
      in_flight_[at(last)] -= bytes;
    }
  }
  // Differences so far.
  Bytes sum = 0;
  for (Bytes& bytes : in_flight_) bytes = sum += bytes;
}

/// When each copy-in would have to start for no op to wait, at the ops' times of the pass before.
void Evaluator::predict_latest_starts() {
  latest_start_.resize(free_ins_.size());
  Nanos next = Nanos::max();
  for (std::size_t k = free_ins_.size(); k-- > 0;) {
    const Move& in = move(free_ins_[k]);
    next = std::min(next, call_start_[at(in.call)]) - in_time_[at(in.tensor)];
    latest_start_[k] = next;
  }
}

Evaluation Evaluator::evaluate(const Strategy& strategy, const EvaluateOptions& options) {
  assert(strategy.algorithms.size() == program_.ops.size());
  Evaluation result;
  result.refused = expander_.expand(strategy, x_);
  if (!result.refused.empty()) return result;
  prepare(strategy);
  for (CallId c = 0; c < calls_; ++c) {
    if (on_device_[at(c)]) result.compute_time += call_time_[at(c)];
  }
  for (const MoveId out : x_.outs) result.copy_time += out_time_[at(move(out).tensor)];
  for (const MoveId in : x_.ins) result.copy_time += in_time_[at(move(in).tensor)];
  predict_unstalled();
  constexpr int kPasses = 2;
  for (int i = 0; i < kPasses; ++i) {
    predict_in_flight();
    predict_latest_starts();
    close_pass();
    if (!pass(options, result.compute_time, result.stuck)) return result;
  }
  resolve_waits();
  result.iteration_time = replay(steps_, table_.compute, scratch_);
  result.feasible = true;
  for (const Bytes load : load_) result.peak_load = std::max(result.peak_load, load);
  return result;
}

/// The pass just made becomes the previous iteration: its times move before time 0.
void Evaluator::close_pass() {
  const Nanos period = ready_[at(table_.compute)];
  const auto shift = [&](const std::vector<Nanos>& from, std::vector<Nanos>& to) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i] - period;
  };
  shift(call_end_, previous_call_end_);
  shift(out_end_, previous_out_end_);
  shift(in_end_, previous_in_end_);
  shift(host_end_, previous_host_end_);
  for (Nanos& ready : ready_) ready -= period;
  previous_load_ = load_;
  std::copy(static_load_.begin(), static_load_.begin() + calls_, load_.begin());
  std::fill(call_needs_in_.begin(), call_needs_in_.end(), kNone);
  reserved_.assign(at(calls_), 0);
  for (const MoveId id : triggered_ins_) reserve(id, bytes_of(id));
  steps_.clear();
  pending_.clear();
  next_in_ = 0;
  next_triggered_ = 0;
  for (const MoveId id : x_.ins) move_step_[at(id)] = kNone;
  compute_knows_out_ = kNone;
  in_knows_call_ = kNone;
  in_knows_out_ = kNone;
}

bool Evaluator::pass(const EvaluateOptions& options, Nanos compute_time, OpId& stuck) {
  const Nanos tolerated = options.give_up_above - compute_time;
  Nanos computed{0};
  for (CallId c = 0; c < calls_; ++c) {
    stuck = x_.calls[at(c)].op;
    if (!issue_copies_in(c, options)) return false;
    if (on_device_[at(c)]) {
      if (!issue_device_call(c, options.load_limit)) return false;
      computed += call_time_[at(c)];
      if (call_end_[at(c)] - computed > tolerated) return false;
    } else {
      issue_host_call(c);
    }
    issue_copies_out(c);
  }
  stuck = kNone;
  return true;
}

bool Evaluator::issue_copies_in(CallId c, const EvaluateOptions& options) {
  if (!issue_triggered_copies_in(c, options.load_limit)) return false;
  // What would not start before the call is over starts as early when it is issued later, and takes
  // memory for less long (unless a copy out goes first, on a link that takes turns). Others may go
  // first then, and where the host bytes are not there yet; room is kept for what they pass by.
  constexpr int kPassedBy = 8;
  const bool may_wait = on_device_[at(c)] != 0 && table_.in != table_.out;
  const Nanos end_of_call =
      may_wait ? ready_[at(table_.compute)] + call_time_[at(c)] : Nanos::max();
  Bytes passed_by = 0;
  int passed = 0;
  for (std::size_t k = next_in_; k < free_ins_.size() && passed < kPassedBy; ++k) {
    const MoveId id = free_ins_[k];
    if (move_step_[at(id)] != kNone) continue;
    const Move& in = move(id);
    const bool due = in.call == c;
    if (!due && (!options.prefetch || ready_[at(table_.in)] >= end_of_call)) break;
    const Nanos not_before =
        options.lead == Nanos::max() ? kLongAgo : latest_start_[k] - options.lead;
    if (!due && may_wait && not_before >= end_of_call) break;
    const bool ready = (in.source == kNone || in.source_previous || move(in.source).call < c) &&
                       (in.source_call == kNone || in.source_call < c) && in_turn(id);
    if (!due && ready &&
        !room_until_deadline(c, in.call, bytes_of(id) + passed_by, options.load_limit)) {
      break;
    }
    const Choice choice = ready ? earliest(id, c, options.load_limit, not_before) : Choice{};
    if (due && !choice.found) return false;
    if (ready && !choice.found) break;
    if (!due && (!ready || choice.start >= end_of_call)) {
      passed_by += bytes_of(id);
      ++passed;
      continue;
    }
    issue_copy_in(id, choice);
  }
  while (next_in_ < free_ins_.size() && move_step_[at(free_ins_[next_in_])] != kNone) ++next_in_;
  return true;
}

/// Those whose trigger is reached, in the order of their triggers; what is due goes first when the
/// memory that others wait for is not there yet.
bool Evaluator::issue_triggered_copies_in(CallId c, Bytes limit) {
  bool blocked = false;
  for (std::size_t k = next_triggered_; k < triggered_ins_.size(); ++k) {
    const MoveId id = triggered_ins_[k];
    if (trigger_position(id) > c) break;
    if (move_step_[at(id)] != kNone) continue;
    const bool due = move(id).call == c;
    if (blocked && !due) continue;
    const Choice choice = earliest(id, c, limit, kLongAgo);
    if (choice.found) {
      issue_copy_in(id, choice);
    } else if (due) {
      return false;
    } else {
      blocked = true;
    }
  }
  while (next_triggered_ < triggered_ins_.size() &&
         move_step_[at(triggered_ins_[next_triggered_])] != kNone) {
    ++next_triggered_;
  }
  return true;
}

bool Evaluator::room_until_deadline(CallId from, CallId deadline, Bytes bytes, Bytes limit) const {
  for (CallId c = from; c < deadline; ++c) {
    if (load_[at(c)] + in_flight_[at(c)] + reserved_[at(c)] + bytes > limit) return false;
  }
  return true;
}

/// See Note [Time pass]. The copy-in overlaps every call after `call`, and what is still being
/// copied out after copy-out `out`; for each candidate call the copy-outs that must be over follow.
Evaluator::Choice Evaluator::earliest(MoveId id, CallId position, Bytes limit,
                                      Nanos not_before) const {
  const Move& in = move(id);
  const Life& target = life(in.device);
  const Bytes bytes = bytes_of(id);
  const std::int32_t here = calls_ + position;

  Nanos earliest_start = ready_[at(table_.in)];
  std::int32_t least_call = std::max(in_knows_call_, 0);
  std::int32_t out = in_knows_out_;
  if (in.source != kNone) {
    out = std::max(out, out_position_[at(in.source)] + (in.source_previous ? 0 : outs_count()));
  }
  if (in.source_call != kNone) {
    earliest_start = std::max(earliest_start, host_end_[at(in.source_call)]);
  }
  // The life this copy-in begins has one address: its previous life must be over.
  if (target.end_move != kNone) {
    out = std::max(out, out_position_[at(target.end_move)] + (target.crosses ? outs_count() : 0));
  } else {
    least_call = std::max(least_call, target.last_call + (target.crosses ? calls_ : 0));
  }
  if (in.trigger != kNone) {
    least_call = std::max(least_call, in.trigger - 1 + (in.trigger_previous ? 0 : calls_));
  }
  if (out != kNone) earliest_start = std::max(earliest_start, extended_out_end(out));

  Choice best;
  Bytes freed_needed = std::numeric_limits<Bytes>::min();
  for (std::int32_t call = here - 1; call >= least_call; --call) {
    const std::int32_t q = call + 1;
    const Bytes load =
        q == here ? load_[at(position)] - call_allocates_[at(position)] : extended_load(q);
    if (load + bytes > limit) break;
    freed_needed = std::max(freed_needed, out_prefix_[at(outs_before(q))] + load + bytes - limit);
    while (out_prefix_[at(out + 1)] < freed_needed) ++out;
    const Nanos out_over = out == kNone ? kLongAgo : extended_out_end(out);
    const Nanos others = std::max(earliest_start, out_over);
    const Nanos start = std::max(others, extended_call_end(call));
    if (!best.found || start < best.start) best = {call, out, start, true};
    if (extended_call_end(call) <= std::max(others, not_before)) break;
  }
  return best;
}

void Evaluator::push(StepKind kind, StreamId stream, std::int32_t id, Nanos start, Nanos duration,
                     const Pending& waits) {
  Step& step = steps_.emplace_back();
  step.kind = kind;
  step.stream = stream;
  step.id = id;
  step.duration = duration;
  step.start = start;
  step.end = start + duration;
  ready_[at(stream)] = step.end;
  pending_.push_back(waits);
}

void Evaluator::issue_copy_in(MoveId id, const Choice& choice) {
  const Move& in = move(id);
  Pending waits;
  if (choice.call > in_knows_call_) waits.call = in_knows_call_ = choice.call;
  if (choice.out > in_knows_out_) waits.out = in_knows_out_ = choice.out;
  if (in.source_call != kNone) waits.host = calls_ + in.source_call;
  move_step_[at(id)] = static_cast<std::int32_t>(steps_.size());
  push(StepKind::copy_in, table_.in, id, choice.start, in_time_[at(in.tensor)], waits);
  in_end_[at(id)] = steps_.back().end;
  call_needs_in_[at(in.call)] = id;
  const Bytes bytes = bytes_of(id);
  if (in.trigger != kNone) reserve(id, -bytes);
  const CallId end = last_call_of(life(in.device));
  for (std::int32_t q = choice.call + 1; q < calls_; ++q) previous_load_[at(q)] += bytes;
  for (CallId c = std::max(choice.call + 1 - calls_, 0); c <= end; ++c) load_[at(c)] += bytes;
}

/// A copy-in without a trigger that is early takes no memory that one with a trigger will need.
void Evaluator::reserve(MoveId id, Bytes bytes) {
  const CallId end = last_call_of(life(move(id).device));
  for (CallId c = trigger_position(id); c <= end; ++c) reserved_[at(c)] += bytes;
}

bool Evaluator::issue_device_call(CallId c, Bytes limit) {
  const Bytes load = load_[at(c)];
  if (load > limit) return false;
  std::int32_t out = std::max(compute_knows_out_, call_needs_out_[at(c)]);
  const Bytes freed_needed = out_prefix_[at(outs_before(calls_ + c))] + load - limit;
  while (out_prefix_[at(out + 1)] < freed_needed) ++out;
  Pending waits;
  Nanos start = ready_[at(table_.compute)];
  if (out > compute_knows_out_) {
    waits.out = compute_knows_out_ = out;
    start = std::max(start, extended_out_end(out));
  }
  if (call_needs_in_[at(c)] != kNone) {
    waits.in = call_needs_in_[at(c)];
    start = std::max(start, in_end_[at(waits.in)]);
  }
  call_step_[at(c)] = static_cast<std::int32_t>(steps_.size());
  call_start_[at(c)] = start;
  push(StepKind::op, table_.compute, c, start, call_time_[at(c)], waits);
  call_end_[at(c)] = steps_.back().end;
  host_end_[at(c)] = call_end_[at(c)];
  return true;
}

void Evaluator::issue_host_call(CallId c) {
  Pending waits;
  Nanos start = ready_[at(table_.host)];
  const auto after_in = [](MoveId& latest, MoveId in, const std::vector<Nanos>& ends) {
    if (latest == kNone || ends[at(in)] > ends[at(latest)]) latest = in;
    return ends[at(in)];
  };
  const Call& call = x_.calls[at(c)];
  const std::size_t operands = program_.ops[at(call.op)].accesses.size();
  for (std::size_t k = 0; k < operands; ++k) {
    const Life& l = life(x_.operands[at(call.first_operand) + k]);
    if (l.begin_move != kNone) {
      const std::int32_t out = out_position_[at(l.begin_move)] + (l.crosses ? 0 : outs_count());
      waits.out = std::max(waits.out, out);
      start = std::max(start, extended_out_end(out));
    }
    if (l.end_move == kNone) continue;
    if (l.begin_call == c) {
      // The host bytes it writes were last read by a copy-in of the previous iteration.
      start = std::max(start, after_in(waits.in_previous, l.end_move, previous_in_end_));
    } else if (move(l.end_move).call <= c) {
      start = std::max(start, after_in(waits.in, l.end_move, in_end_));
    }
  }
  call_step_[at(c)] = static_cast<std::int32_t>(steps_.size());
  call_start_[at(c)] = ready_[at(table_.compute)];
  push(StepKind::op, table_.host, c, start, call_time_[at(c)], waits);
  host_end_[at(c)] = steps_.back().end;
  call_end_[at(c)] = ready_[at(table_.compute)];  // for waits on the compute stream up to here
}

void Evaluator::issue_copies_out(CallId c) {
  for (std::int32_t j = outs_before_[at(c)]; j < outs_before_[at(c) + 1]; ++j) {
    const MoveId id = x_.outs[at(j)];
    const Move& out = move(id);
    Pending waits;
    waits.call = calls_ + c;
    Nanos start = std::max(ready_[at(table_.out)], call_end_[at(c)]);
    if (const Life& host = life(out.host); host.last_call != kNone) {
      waits.host = host.last_call;  // of the previous iteration: it read the same host bytes
      start = std::max(start, previous_host_end_[at(host.last_call)]);
    }
    move_step_[at(id)] = static_cast<std::int32_t>(steps_.size());
    push(StepKind::copy_out, table_.out, id, start, out_time_[at(out.tensor)], waits);
    out_end_[at(j)] = steps_.back().end;
  }
}

/// Extended indices become positions in the list, now that all positions are known.
void Evaluator::resolve_waits() {
  const auto set = [](Step& step, StreamId stream, std::int32_t index, std::int32_t iteration) {
    if (stream == step.stream) return;
    StepWait& wait = step.waits[at(stream)];
    const bool later = wait.index == kNone || iteration > wait.iteration ||
                       (iteration == wait.iteration && index > wait.index);
    if (later) wait = {index, iteration};
  };
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    const Pending& p = pending_[i];
    if (p.call != kNone) {
      const bool now = p.call >= calls_;
      const CallId device = device_call_at_or_before_[at(now ? p.call - calls_ : p.call)];
      if (device != kNone) {
        set(step, table_.compute, call_step_[at(device)], now ? 0 : -1);
      } else if (now) {
        // No device call in this iteration yet: the last of the previous one.
        set(step, table_.compute, call_step_[at(device_call_at_or_before_[at(calls_ - 1)])], -1);
      }
    }
    if (p.out != kNone) {
      const bool now = p.out >= outs_count();
      const std::int32_t j = now ? p.out - outs_count() : p.out;
      set(step, table_.out, move_step_[at(x_.outs[at(j)])], now ? 0 : -1);
    }
    if (p.in != kNone) set(step, table_.in, move_step_[at(p.in)], 0);
    if (p.in_previous != kNone) set(step, table_.in, move_step_[at(p.in_previous)], -1);
    if (p.host != kNone) {
      const bool now = p.host >= calls_;
      set(step, table_.host, call_step_[at(now ? p.host - calls_ : p.host)], now ? 0 : -1);
    }
  }
}

}  // namespace tidepool
