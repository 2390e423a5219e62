#include "lower/timing_problem.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tidepool {
namespace {

template <class T>
std::size_t at(T index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

TimingProblems::TimingProblems(const Program& program, const Machine& machine)
    : program_(program) {
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

void TimingProblems::make(const Strategy& strategy, const Expansion& x, TimingProblem& p) {
  begin(strategy, x, p);
  add_copies(x, p);
  add_lives(x, p);
  add_host_waits(x, p);
  finish(p);
}

void TimingProblems::begin(const Strategy& strategy, const Expansion& x, TimingProblem& p) {
  p.calls.clear();
  p.outs.clear();
  p.ins.clear();
  p.free_ins.clear();
  p.triggered.clear();
  p.host_waits.clear();
  p.static_load.assign(x.calls.size() + 1, 0);
  p.compute_time = p.out_time = p.in_time = Nanos{0};
  for (std::size_t c = 0; c < x.calls.size(); ++c) {
    const OpId op = x.calls[c].op;
    const std::size_t a = at(algorithm_start_[at(op)] + strategy.algorithms[at(op)]);
    TimedCall& call = p.calls.emplace_back();
    call.time = algorithm_time_[a];
    call.allocates = algorithm_workspace_[a];
    call.on_device = program_.ops[at(op)].place == OpPlace::device;
    if (call.on_device) p.compute_time += call.time;
    p.static_load[c] += call.allocates;
    p.static_load[c + 1] -= call.allocates;
  }
}

void TimingProblems::add_copies(const Expansion& x, TimingProblem& p) {
  position_.resize(x.moves.size());
  for (const MoveId id : x.outs) {
    const Move& move = x.moves[at(id)];
    position_[at(id)] = p.out_count();
    p.outs.push_back({move.call, id, out_time_[at(move.tensor)], tensor_bytes_[at(move.tensor)],
                      x.lives[at(move.host)].last_call});
    p.out_time += p.outs.back().time;
  }
  const std::int32_t outs = p.out_count();
  const std::int32_t calls = p.call_count();
  last_in_.assign(program_.tensors.size(), kNone);
  for (const MoveId id : x.ins) {
    const Move& move = x.moves[at(id)];
    const Life& life = x.lives[at(move.device)];
    const auto position = static_cast<std::int32_t>(p.ins.size());
    position_[at(id)] = position;
    TimedIn& in = p.ins.emplace_back();
    in.call = move.call;
    in.id = id;
    in.time = in_time_[at(move.tensor)];
    in.bytes = tensor_bytes_[at(move.tensor)];
    in.before = std::exchange(last_in_[at(move.tensor)], position);
    in.after_host_call = move.source_call;
    if (move.source_call != kNone) in.not_before = move.source_call + 1;
    if (move.source != kNone) {
      in.after_out = position_[at(move.source)] + (move.source_previous ? 0 : outs);
      if (!move.source_previous) {
        in.not_before = std::max(in.not_before, x.moves[at(move.source)].call + 1);
      }
    }
    // The life this copy begins has one address: that of the iteration before must be over.
    if (life.end_move != kNone) {
      in.after_out =
          std::max(in.after_out, position_[at(life.end_move)] + (life.crosses ? outs : 0));
    } else {
      in.after_call = std::max(in.after_call, life.last_call + (life.crosses ? calls : 0));
    }
    if (move.trigger != kNone) {
      in.after_call =
          std::max(in.after_call, move.trigger - 1 + (move.trigger_previous ? 0 : calls));
      in.trigger = std::max(move.trigger_previous ? 0 : move.trigger, in.not_before);
    }
    (move.trigger == kNone ? p.free_ins : p.triggered).push_back(position);
    p.in_time += in.time;
  }
  std::sort(p.triggered.begin(), p.triggered.end(), [&p](std::int32_t a, std::int32_t b) {
    const auto key = [&p](std::int32_t i) {
      return std::tuple(p.ins[at(i)].trigger, p.ins[at(i)].call, i);
    };
    return key(a) < key(b);
  });
}

/// Load that does not depend on when copies are issued, as a difference array.
void TimingProblems::add_lives(const Expansion& x, TimingProblem& p) {
  const std::int32_t calls = p.call_count();
  for (const Life& l : x.lives) {
    if (l.space != 0) continue;
    const Bytes bytes = tensor_bytes_[at(l.tensor)];
    const auto add = [&](CallId from, CallId to) {
      if (from > to) return;
      p.static_load[at(from)] += bytes;
      p.static_load[at(to) + 1] -= bytes;
    };
    if (l.always) {
      add(0, calls - 1);
      continue;
    }
    // Last call before its bytes are free or on their way out.
    const CallId end = l.end_move != kNone ? x.moves[at(l.end_move)].call : l.last_call;
    if (l.crosses) add(0, end);
    const CallId last = l.crosses ? calls - 1 : end;
    if (l.begin_call == kNone) {
      add(x.moves[at(l.begin_move)].call + 1, last);
      continue;
    }
    add(l.begin_call, last);
    TimedCall& call = p.calls[at(l.begin_call)];
    call.allocates += bytes;
    if (l.end_move != kNone) {
      call.needs_out = std::max(call.needs_out,
                                position_[at(l.end_move)] + (l.crosses ? p.out_count() : 0));
    }
  }
  for (std::int32_t j = 0; j < p.out_count(); ++j) {
    const Move& move = x.moves[at(p.outs[at(j)].id)];
    if (move.barrier == kNone) continue;
    TimedCall& call = p.calls[at(move.barrier)];
    call.needs_out = std::max(call.needs_out, j + (move.barrier_next ? 0 : p.out_count()));
  }
}

void TimingProblems::add_host_waits(const Expansion& x, TimingProblem& p) {
  for (CallId c = 0; c < p.call_count(); ++c) {
    if (p.calls[at(c)].on_device) continue;
    const Call& call = x.calls[at(c)];
    const std::size_t operands = program_.ops[at(call.op)].accesses.size();
    for (std::size_t k = 0; k < operands; ++k) {
      const Life& l = x.lives[at(x.operands[at(call.first_operand) + k])];
      if (l.begin_move != kNone) {
        const std::int32_t out = position_[at(l.begin_move)] + (l.crosses ? 0 : p.out_count());
        p.host_waits.push_back({c, out, kNone, out < p.out_count()});
      }
      if (l.end_move == kNone) continue;
      // The host bytes that it writes were last read by a copy-in of the previous iteration.
      if (l.begin_call == c) {
        p.host_waits.push_back({c, kNone, position_[at(l.end_move)], true});
      } else if (x.moves[at(l.end_move)].call <= c) {
        p.host_waits.push_back({c, kNone, position_[at(l.end_move)], false});
      }
    }
  }
}

void TimingProblems::finish(TimingProblem& p) {
  std::int32_t next = 0;
  Bytes live = 0;
  for (CallId c = 0; c < p.call_count(); ++c) {
    while (next < p.out_count() && p.outs[at(next)].call < c) ++next;
    p.calls[at(c)].outs_before = next;
    live += p.static_load[at(c)];
    p.static_load[at(c)] = live;
  }
  p.static_load.pop_back();
  p.freed.assign(1, 0);
  for (int iteration = 0; iteration < 2; ++iteration) {
    for (const TimedOut& out : p.outs) p.freed.push_back(p.freed.back() + out.bytes);
  }
}

}  // namespace tidepool
