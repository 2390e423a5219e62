#include "lower/timing_problem.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/at.h"
#include "lower/away_spaces.h"

namespace tidepool {

TimingProblems::TimingProblems(const Program& program, const Machine& machine) : program_(program) {
  for (const Op& op : program.ops) {
    algorithm_start_.push_back(static_cast<std::int32_t>(algorithm_time_.size()));
    for (const Algorithm& a : op.algorithms) {
      algorithm_time_.push_back(a.time);
      algorithm_workspace_.push_back(align_up(a.workspace, machine.alignment()));
    }
  }
  const std::vector<SpaceId> away = away_spaces(program, machine);
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    const Bytes bytes = program.tensors[t].bytes;
    tensor_bytes_.push_back(align_up(bytes, machine.alignment()));
    out_time_.push_back(machine.find_link(0, away[t])->speed.time(bytes));
    in_time_.push_back(machine.find_link(away[t], 0)->speed.time(bytes));
  }
}

void TimingProblem::clear_copies() {
  outs.clear();
  ins.clear();
  free_ins.clear();
  triggered.clear();
  host_waits.clear();
  out_time = in_time = Nanos{0};
}

void TimingProblems::make(const Strategy& strategy, const Expansion& x, TimingProblem& p) {
  p.clear_copies();
  p.calls.clear();
  p.compute_time = Nanos{0};
  for (const Call& c : x.calls) {
    TimedCall& call = p.calls.emplace_back();
    call.on_device = program_.ops[at(c.op)].place == OpPlace::device;
    set_algorithm(strategy, c.op, call);
    if (call.on_device) p.compute_time += call.time;
  }
  position_.resize(x.moves.size());
  const TimingPart part{x.moves, x.lives, position_};
  for (const MoveId id : x.outs) {
    position_[at(id)] = p.out_count();
    p.outs.push_back(timed_out(part, id));
    p.out_time += p.outs.back().time;
  }
  last_in_.assign(program_.tensors.size(), kNone);
  for (const MoveId id : x.ins) {
    const auto position = static_cast<std::int32_t>(p.ins.size());
    position_[at(id)] = position;
    p.ins.push_back(timed_in(part, id, p));
    p.ins.back().before = std::exchange(last_in_[at(x.moves[at(id)].tensor)], position);
    p.in_time += p.ins.back().time;
    (p.ins.back().trigger == kNone ? p.free_ins : p.triggered).push_back(position);
  }
  std::sort(p.triggered.begin(), p.triggered.end(), [&p](std::int32_t a, std::int32_t b) {
    const auto key = [&p](std::int32_t i) {
      return std::tuple(p.ins[at(i)].trigger, p.ins[at(i)].call, i);
    };
    return key(a) < key(b);
  });
  load_.assign(x.calls.size() + 1, 0);
  for (const Life& life : x.lives) add_life(part, life, 1, p, load_);
  for (const MoveId id : x.outs) {
    add_needed_out(part, id, p);
    const Move& move = x.moves[at(id)];
    if (move.barrier == kNone) continue;
    std::int32_t& needs = p.calls[at(move.barrier)].needs_out;
    needs = std::max(needs, position_[at(id)] + (move.barrier_next ? 0 : p.out_count()));
  }
  auto turn = x.host_turns.begin();
  for (CallId c = 0; c < p.call_count(); ++c) {
    if (p.calls[at(c)].on_device) continue;
    for (; turn != x.host_turns.end() && turn->call == c; ++turn) {
      p.host_waits.push_back({c, kNone, position_[at(turn->in)], false});
    }
    const Call& call = x.calls[at(c)];
    for (std::size_t k = 0; k < program_.ops[at(call.op)].accesses.size(); ++k) {
      add_host_waits(part, c, x.lives[at(x.operands[at(call.first_operand) + k])], p);
    }
  }
  finish(load_, p);
}

void TimingProblems::set_algorithm(const Strategy& strategy, OpId op, TimedCall& call) const {
  const std::size_t a = at(algorithm_start_[at(op)] + strategy.algorithms[at(op)]);
  call.time = algorithm_time_[a];
  call.allocates += algorithm_workspace_[a] - call.workspace;
  call.workspace = algorithm_workspace_[a];
}

TimedOut TimingProblems::timed_out(const TimingPart& part, MoveId id) const {
  const Move& move = part.moves[at(id)];
  return {move.call, id, out_time_[at(move.tensor)], tensor_bytes_[at(move.tensor)],
          part.lives[at(move.host)].last_call};
}

TimedIn TimingProblems::timed_in(const TimingPart& part, MoveId id, const TimingProblem& p) const {
  const std::int32_t outs = p.out_count();
  const std::int32_t calls = p.call_count();
  const Move& move = part.moves[at(id)];
  const Life& life = part.lives[at(move.device)];
  TimedIn in;
  in.call = move.call;
  in.id = id;
  in.time = in_time_[at(move.tensor)];
  in.bytes = tensor_bytes_[at(move.tensor)];
  in.after_host_call = move.source_call;
  if (move.source_call != kNone) in.not_before = move.source_call + 1;
  if (move.source != kNone) {
    in.after_out = part.position[at(move.source)] + (move.source_previous ? 0 : outs);
    if (!move.source_previous) {
      in.not_before = std::max<CallId>(in.not_before, part.moves[at(move.source)].call + 1);
    }
  }
  // The life this copy begins has one address: that of the iteration before must be over.
  if (life.end_move != kNone) {
    in.after_out =
        std::max(in.after_out, part.position[at(life.end_move)] + (life.crosses ? outs : 0));
  } else {
    in.after_call = std::max(in.after_call, life.last_call + (life.crosses ? calls : 0));
  }
  if (move.after != kNone) {
    in.after_call = std::max(in.after_call, move.after + (move.after_previous ? 0 : calls));
    if (!move.after_previous) in.not_before = std::max<CallId>(in.not_before, move.after + 1);
  }
  if (move.trigger != kNone) {
    const std::int32_t op_before = move.trigger - 1 + (move.trigger_previous ? 0 : calls);
    if (!move.early) in.after_call = std::max(in.after_call, op_before);
    in.trigger = std::max(move.trigger_previous ? CallId{0} : move.trigger, in.not_before);
  }
  return in;
}

void TimingProblems::add_life(const TimingPart& part, const Life& l, int sign, TimingProblem& p,
                              std::vector<Bytes>& load) const {
  if (l.space != 0) return;
  const Bytes bytes = sign * tensor_bytes_[at(l.tensor)];
  const auto add = [&](CallId from, CallId to) {
    if (from > to) return;
    load[at(from)] += bytes;
    load[at(to) + 1] -= bytes;
  };
  const CallId last_of_all = p.call_count() - 1;
  if (l.always) {
    add(0, last_of_all);
    return;
  }
  // Last call before its bytes are free or on their way out.
  const CallId end = l.end_move != kNone ? part.moves[at(l.end_move)].call : l.last_call;
  if (l.crosses) add(0, end);
  const CallId last = l.crosses ? last_of_all : end;
  if (l.begin_call != kNone) {
    add(l.begin_call, last);
    p.calls[at(l.begin_call)].allocates += bytes;
  } else {
    add(part.moves[at(l.begin_move)].call + 1, last);
  }
}

void TimingProblems::add_needed_out(const TimingPart& part, MoveId id, TimingProblem& p) {
  const Life& life = part.lives[at(part.moves[at(id)].device)];
  if (life.begin_call == kNone || life.end_move != id || life.always) return;
  std::int32_t& needs = p.calls[at(life.begin_call)].needs_out;
  needs = std::max(needs, part.position[at(id)] + (life.crosses ? p.out_count() : 0));
}

void TimingProblems::add_host_waits(const TimingPart& part, CallId call, const Life& l,
                                    TimingProblem& p) {
  if (l.begin_move != kNone) {
    const std::int32_t out = part.position[at(l.begin_move)] + (l.crosses ? 0 : p.out_count());
    p.host_waits.push_back({call, out, kNone, out < p.out_count()});
  }
  // The host bytes that it writes were last read by a copy-in of the previous iteration.
  if (l.end_move != kNone && l.begin_call == call) {
    p.host_waits.push_back({call, kNone, part.position[at(l.end_move)], true});
  }
}

void TimingProblems::finish(const std::vector<Bytes>& load, TimingProblem& p) {
  p.static_load.resize(p.calls.size());
  std::int32_t next = 0;
  Bytes live = 0;
  for (CallId c = 0; c < p.call_count(); ++c) {
    TimedCall& call = p.calls[at(c)];
    while (next < p.out_count() && p.outs[at(next)].call < c) ++next;
    call.outs_before = next;
    live += load[at(c)];
    p.static_load[at(c)] = live + call.workspace;
  }
  p.freed.assign(1, 0);
  for (int iteration = 0; iteration < 2; ++iteration) {
    for (const TimedOut& out : p.outs) p.freed.push_back(p.freed.back() + out.bytes);
  }
}

}  // namespace tidepool
