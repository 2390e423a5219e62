#include "plan/evaluate.h"

#include <algorithm>
#include <cassert>
#include <limits>

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
  table.in = machine.duplex ? 2 : 1;
  table.host = table.in + 1;
  table.streams = {{0, StreamKind::compute}, {0, StreamKind::copy}};
  if (machine.duplex) table.streams.push_back({0, StreamKind::copy});
  table.streams.push_back({0, StreamKind::host});
  return table;
}

Nanos replay(std::span<Step> steps, StreamId compute, ReplayScratch& scratch) {
  constexpr int kMaxIterations = 24;
  scratch.current_end.assign(steps.size(), Nanos{0});
  scratch.previous_end.assign(steps.size(), Nanos{0});
  std::array<Nanos, kMaxStreams> ready{};
  Nanos previous_base{0};
  Nanos iteration_time{0};
  for (int iteration = 0; iteration < kMaxIterations; ++iteration) {
    const Nanos base = ready[at(compute)];
    bool steady = iteration > 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Step& step = steps[i];
      Nanos start = ready[at(step.stream)];
      for (const StepWait& wait : step.waits) {
        if (wait.index == kNone) continue;
        if (wait.iteration == 0) {
          start = std::max(start, scratch.current_end[at(wait.index)]);
        } else if (iteration > 0) {
          start = std::max(start, scratch.previous_end[at(wait.index)]);
        }
      }
      const Nanos end = start + step.duration;
      ready[at(step.stream)] = end;
      steady = steady && end - base == scratch.previous_end[i] - previous_base;
      scratch.current_end[i] = end;
      step.start = start - base;
      step.end = end - base;
    }
    iteration_time = ready[at(compute)] - base;
    if (steady) break;
    previous_base = base;
    std::swap(scratch.current_end, scratch.previous_end);
  }
  return iteration_time;
}

Evaluator::Evaluator(const Program& program, const AccessIndex& index, const Machine& machine)
    : program_(program),
      index_(index),
      table_(StreamTable::of(machine)),
      ops_(static_cast<std::int32_t>(program.ops.size())) {
  const std::size_t n = program.ops.size();
  OpId last_device = kNone;
  for (std::size_t i = 0; i < n; ++i) {
    const Op& op = program.ops[i];
    on_device_.push_back(op.place == OpPlace::device ? 1 : 0);
    if (on_device_[i]) last_device = static_cast<OpId>(i);
    device_op_at_or_before_.push_back(last_device);
    algorithm_start_.push_back(static_cast<std::int32_t>(algorithm_time_.size()));
    for (const Algorithm& a : op.algorithms) {
      algorithm_time_.push_back(a.time);
      algorithm_workspace_.push_back(align_up(a.workspace, machine.alignment));
    }
  }
  for (const Tensor& t : program.tensors) {
    tensor_bytes_.push_back(align_up(t.bytes, machine.alignment));
    out_time_.push_back(machine.to_host.time(t.bytes));
    in_time_.push_back(machine.to_device.time(t.bytes));
  }
  const auto gaps = index.gaps();
  for (GapId g = 0; g < static_cast<GapId>(gaps.size()); ++g) {
    gaps_by_from_.push_back(g);
    gaps_by_to_.push_back(g);
  }
  std::stable_sort(gaps_by_from_.begin(), gaps_by_from_.end(),
                   [&](GapId a, GapId b) { return gaps[at(a)].from < gaps[at(b)].from; });
  std::stable_sort(gaps_by_to_.begin(), gaps_by_to_.end(),
                   [&](GapId a, GapId b) { return gaps[at(a)].to < gaps[at(b)].to; });

  for (OpId id = 0; id < ops_; ++id) {
    host_operand_start_.push_back(static_cast<std::int32_t>(host_operand_gaps_.size()));
    if (on_device_[at(id)]) continue;
    for (const Access& access : program.ops[at(id)].accesses) {
      GapId before = kNone;
      GapId after = kNone;
      const GapId first = index.first_gap(access.tensor);
      const auto own = index.gaps(access.tensor);
      for (std::size_t i = 0; i < own.size(); ++i) {
        if (own[i].to == id) before = first + static_cast<GapId>(i);
        if (own[i].from == id) after = first + static_cast<GapId>(i);
      }
      host_operand_gaps_.push_back(before);
      host_operand_gaps_.push_back(after);
    }
  }
  host_operand_start_.push_back(static_cast<std::int32_t>(host_operand_gaps_.size()));

  const std::size_t g = gaps.size();
  has_out_.resize(g);
  has_in_.resize(g);
  tensor_moves_.resize(program.tensors.size());
  outs_.reserve(g);
  ins_.reserve(g);
  out_position_.resize(g);
  outs_before_.resize(n + 1);
  out_prefix_.reserve(2 * g + 1);
  life_end_.resize(g);
  freed_by_out_.resize(g);
  op_needs_out_.resize(n);
  op_allocates_.resize(n);
  op_time_.resize(n);
  static_load_.resize(n + 1);
  load_.resize(n);
  previous_load_.resize(n);
  in_flight_.resize(n);
  op_start_.resize(n);
  op_end_.resize(n);
  previous_op_end_.resize(n);
  out_end_.resize(g);
  previous_out_end_.resize(g);
  in_end_.resize(g);
  previous_in_end_.resize(g);
  host_end_.resize(n);
  previous_host_end_.resize(n);
  op_needs_in_.resize(n);
  steps_.reserve(n + 2 * g);
  pending_.reserve(n + 2 * g);
  op_step_.resize(n);
  out_step_.resize(g);
  in_step_.resize(g);
}

void Evaluator::add_load(OpId from, OpId to, Bytes bytes) {
  // A difference array while the strategy is prepared; summed up at its end.
  static_load_[at(from)] += bytes;
  static_load_[at(to) + 1] -= bytes;
}

/// Cuts one tensor's accesses into lives on the device: what begins each, what ends it.
void Evaluator::prepare_tensor(TensorId tensor) {
  const auto accesses = index_.accesses(tensor);
  const auto gaps = index_.gaps(tensor);
  const GapId first_gap = index_.first_gap(tensor);
  const Bytes bytes = tensor_bytes_[at(tensor)];
  const bool persistent = program_.tensors[at(tensor)].persistent;

  GapId first_out = kNone;  // the first gap in time order that ends a life
  for (std::size_t i = 0; i < gaps.size() && first_out == kNone; ++i) {
    if (has_out_[at(first_gap) + i]) first_out = first_gap + static_cast<GapId>(i);
  }
  OpId last_on_device = kNone;
  OpId first_on_device = kNone;
  for (const TensorAccess& access : accesses) {
    if (!on_device_[at(access.op)]) continue;
    if (first_on_device == kNone) first_on_device = access.op;
    last_on_device = access.op;
  }
  if (first_on_device == kNone) return;

  // The life that exists at the tensor's first device access without a copy-in.
  const bool wraps_on_device = persistent && !gaps.empty() && gaps.back().kind == GapKind::device &&
                               !has_in_[at(first_gap) + gaps.size() - 1];
  const bool begins_with_op = !persistent && accesses.front().op == first_on_device;
  if (wraps_on_device || begins_with_op) {
    const OpId from = wraps_on_device ? 0 : first_on_device;
    if (first_out == kNone) {
      add_load(from, wraps_on_device ? ops_ - 1 : last_on_device, bytes);
    } else {
      add_load(from, index_.gaps()[at(first_out)].from, bytes);
      if (begins_with_op) {
        auto& needs = op_needs_out_[at(first_on_device)];
        needs = std::max(needs, out_position_[at(first_out)]);
      }
    }
    if (begins_with_op) op_allocates_[at(first_on_device)] += bytes;
  }

  // Lives begun by copy-ins: up to the next gap with a copy-out, walking cyclically.
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const GapId gap = first_gap + static_cast<GapId>(i);
    if (!has_in_[at(gap)]) continue;
    GapId end = kNone;
    const std::size_t start = gaps[i].wraps ? 0 : i + 1;
    for (std::size_t j = start; j < gaps.size() && end == kNone; ++j) {
      if (has_out_[at(first_gap) + j]) end = first_gap + static_cast<GapId>(j);
    }
    if (end != kNone) {
      life_end_[at(gap)] = index_.gaps()[at(end)].from;
      freed_by_out_[at(gap)] = out_position_[at(end)];  // of the previous iteration
    } else if (persistent && !gaps[i].wraps) {
      // Lives on into the next iteration, until that one's first copy-out.
      life_end_[at(gap)] = ops_ - 1;
      freed_by_out_[at(gap)] = outs_count() + out_position_[at(first_out)];
    } else {
      life_end_[at(gap)] = last_on_device;
      freed_by_out_[at(gap)] = kNone;
    }
  }
}

void Evaluator::prepare(const Strategy& strategy) {
  const auto gaps = index_.gaps();
  std::fill(tensor_moves_.begin(), tensor_moves_.end(), 0);
  for (std::size_t g = 0; g < gaps.size(); ++g) {
    const bool swapped = gaps[g].kind == GapKind::device && strategy.gaps[g] == Decision::swap;
    has_out_[g] = swapped || gaps[g].kind == GapKind::download;
    has_in_[g] = swapped || gaps[g].kind == GapKind::upload;
  }
  outs_.clear();
  ins_.clear();
  for (const GapId g : gaps_by_from_) {
    if (!has_out_[at(g)]) continue;
    out_position_[at(g)] = outs_count();
    outs_.push_back(g);
  }
  for (const GapId g : gaps_by_to_) {
    if (has_in_[at(g)]) ins_.push_back(g);
  }
  std::size_t next = 0;
  for (OpId op = 0; op <= ops_; ++op) {
    while (next < outs_.size() && gaps[at(outs_[next])].from < op) ++next;
    outs_before_[at(op)] = static_cast<std::int32_t>(next);
  }
  out_prefix_.assign(1, 0);
  for (int iteration = 0; iteration < 2; ++iteration) {
    for (const GapId g : outs_) {
      out_prefix_.push_back(out_prefix_.back() + tensor_bytes_[at(gaps[at(g)].tensor)]);
    }
  }

  std::fill(static_load_.begin(), static_load_.end(), 0);
  std::fill(op_needs_out_.begin(), op_needs_out_.end(), kNone);
  for (OpId op = 0; op < ops_; ++op) {
    const std::size_t a = at(algorithm_start_[at(op)] + strategy.algorithms[at(op)]);
    op_time_[at(op)] = algorithm_time_[a];
    op_allocates_[at(op)] = algorithm_workspace_[a];
    add_load(op, op, algorithm_workspace_[a]);
  }
  for (TensorId t = 0; t < static_cast<TensorId>(tensor_bytes_.size()); ++t) prepare_tensor(t);
  Bytes live = 0;
  for (OpId op = 0; op < ops_; ++op) {
    live += static_load_[at(op)];
    static_load_[at(op)] = live;
  }
}

/// Before the first pass: the previous iteration as if nothing ever stalled.
void Evaluator::predict_unstalled() {
  Nanos now{0};
  for (OpId op = 0; op < ops_; ++op) {
    op_start_[at(op)] = now;
    if (on_device_[at(op)]) now += op_time_[at(op)];
    op_end_[at(op)] = now;
    host_end_[at(op)] = now;
  }
  Nanos out_ready{0};
  for (std::size_t j = 0; j < outs_.size(); ++j) {
    const Gap& gap = index_.gaps()[at(outs_[j])];
    out_ready = std::max(out_ready, op_end_[at(gap.from)]) + out_time_[at(gap.tensor)];
    out_end_[j] = out_ready;
  }
  for (const GapId g : ins_) in_end_[at(g)] = op_start_[at(index_.gaps()[at(g)].to)];
  std::copy(static_load_.begin(), static_load_.begin() + ops_, load_.begin());
  ready_.fill(now);
}

/// Bytes still on their way out at each op, from the ends known so far.
void Evaluator::predict_in_flight() {
  std::fill(in_flight_.begin(), in_flight_.end(), 0);
  const Nanos period = ops_ > 0 ? op_end_[at(ops_ - 1)] : Nanos{0};
  for (std::size_t j = 0; j < outs_.size(); ++j) {
    const Gap& gap = index_.gaps()[at(outs_[j])];
    const Bytes bytes = tensor_bytes_[at(gap.tensor)];
    OpId op = gap.from + 1;
    for (; op < ops_ && op_start_[at(op)] < out_end_[j]; ++op) in_flight_[at(op)] += bytes;
    if (op < ops_) continue;
    for (OpId next = 0; next < gap.from && op_start_[at(next)] + period < out_end_[j]; ++next) {
      in_flight_[at(next)] += bytes;
    }
  }
}

Evaluation Evaluator::evaluate(const Strategy& strategy, const EvaluateOptions& options) {
  assert(strategy.gaps.size() == index_.gaps().size());
  assert(strategy.algorithms.size() == program_.ops.size());
  prepare(strategy);
  Evaluation result;
  for (OpId op = 0; op < ops_; ++op) {
    if (on_device_[at(op)]) result.compute_time += op_time_[at(op)];
  }
  predict_unstalled();
  constexpr int kPasses = 2;
  for (int i = 0; i < kPasses; ++i) {
    predict_in_flight();
    close_pass();
    if (!pass(options, result.stuck)) return result;
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
  shift(op_end_, previous_op_end_);
  shift(out_end_, previous_out_end_);
  shift(in_end_, previous_in_end_);
  shift(host_end_, previous_host_end_);
  for (Nanos& ready : ready_) ready -= period;
  previous_load_ = load_;
  std::copy(static_load_.begin(), static_load_.begin() + ops_, load_.begin());
  std::fill(op_needs_in_.begin(), op_needs_in_.end(), kNone);
  steps_.clear();
  pending_.clear();
  next_in_ = 0;
  compute_knows_out_ = kNone;
  in_knows_op_ = kNone;
  in_knows_out_ = kNone;
}

bool Evaluator::pass(const EvaluateOptions& options, OpId& stuck) {
  for (OpId op = 0; op < ops_; ++op) {
    stuck = op;
    if (!issue_copies_in(op, options)) return false;
    if (on_device_[at(op)]) {
      if (!issue_device_op(op, options.load_limit)) return false;
    } else {
      issue_host_op(op);
    }
    issue_copies_out(op);
  }
  stuck = kNone;
  return true;
}

bool Evaluator::issue_copies_in(OpId op, const EvaluateOptions& options) {
  for (; next_in_ < ins_.size(); ++next_in_) {
    const GapId g = ins_[next_in_];
    const Gap& gap = index_.gaps()[at(g)];
    const bool due = gap.to == op;
    if (!due) {
      if (!options.prefetch) break;
      if (!gap.wraps && gap.from >= op) break;
      if (!room_until_deadline(op, gap.to, tensor_bytes_[at(gap.tensor)], options.load_limit)) break;
    }
    const Choice choice = earliest(g, op, options.load_limit);
    if (!choice.found) {
      if (due) return false;
      break;
    }
    issue_copy_in(g, choice);
  }
  return true;
}

bool Evaluator::room_until_deadline(OpId from, OpId deadline, Bytes bytes, Bytes limit) const {
  for (OpId op = from; op < deadline; ++op) {
    if (load_[at(op)] + in_flight_[at(op)] + bytes > limit) return false;
  }
  return true;
}

/// See Note [Time pass]. The copy-in overlaps every op after `op`, and what is still being copied
/// out after copy-out `out`; for each candidate op the copy-outs that must be over follow.
Evaluator::Choice Evaluator::earliest(GapId g, OpId position, Bytes limit) const {
  const Gap& gap = index_.gaps()[at(g)];
  const Bytes bytes = tensor_bytes_[at(gap.tensor)];
  const std::int32_t here = ops_ + position;

  Nanos earliest_start = ready_[at(table_.in)];
  std::int32_t least_op = std::max(in_knows_op_, 0);
  std::int32_t out = in_knows_out_;
  if (has_out_[at(g)]) {
    const std::int32_t own = out_position_[at(g)] + (gap.wraps ? 0 : outs_count());
    out = std::max(out, own);
  } else {
    earliest_start = std::max(earliest_start, host_end_[at(gap.from)]);
  }
  // The life this copy-in begins has one address: its previous life must be over.
  if (freed_by_out_[at(g)] != kNone) {
    out = std::max(out, freed_by_out_[at(g)]);
  } else {
    least_op = std::max(least_op, life_end_[at(g)]);
  }
  if (out != kNone) earliest_start = std::max(earliest_start, extended_out_end(out));

  Choice best;
  Bytes freed_needed = std::numeric_limits<Bytes>::min();
  for (std::int32_t op = here - 1; op >= least_op; --op) {
    const std::int32_t q = op + 1;
    const Bytes load = q == here ? load_[at(position)] - op_allocates_[at(position)]
                                 : extended_load(q);
    if (load + bytes > limit) break;
    freed_needed = std::max(freed_needed, out_prefix_[at(outs_before(q))] + load + bytes - limit);
    while (out_prefix_[at(out + 1)] < freed_needed) ++out;
    const Nanos out_over = out == kNone ? kLongAgo : extended_out_end(out);
    const Nanos others = std::max(earliest_start, out_over);
    const Nanos start = std::max(others, extended_op_end(op));
    if (!best.found || start < best.start) best = {op, out, start, true};
    if (extended_op_end(op) <= others) break;
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

void Evaluator::issue_copy_in(GapId g, const Choice& choice) {
  const Gap& gap = index_.gaps()[at(g)];
  Pending waits;
  if (choice.op > in_knows_op_) waits.op = in_knows_op_ = choice.op;
  if (choice.out > in_knows_out_) waits.out = in_knows_out_ = choice.out;
  if (gap.kind == GapKind::upload) waits.host = ops_ + gap.from;
  in_step_[at(g)] = static_cast<std::int32_t>(steps_.size());
  push(StepKind::copy_in, table_.in, g, choice.start, in_time_[at(gap.tensor)], waits);
  in_end_[at(g)] = steps_.back().end;
  op_needs_in_[at(gap.to)] = g;
  const Bytes bytes = tensor_bytes_[at(gap.tensor)];
  for (std::int32_t q = choice.op + 1; q < ops_; ++q) previous_load_[at(q)] += bytes;
  for (OpId op = std::max(choice.op + 1 - ops_, 0); op <= life_end_[at(g)]; ++op) {
    load_[at(op)] += bytes;
  }
}

bool Evaluator::issue_device_op(OpId op, Bytes limit) {
  const Bytes load = load_[at(op)];
  if (load > limit) return false;
  std::int32_t out = std::max(compute_knows_out_, op_needs_out_[at(op)]);
  const Bytes freed_needed = out_prefix_[at(outs_before(ops_ + op))] + load - limit;
  while (out_prefix_[at(out + 1)] < freed_needed) ++out;
  Pending waits;
  Nanos start = ready_[at(table_.compute)];
  if (out > compute_knows_out_) {
    waits.out = compute_knows_out_ = out;
    start = std::max(start, extended_out_end(out));
  }
  if (op_needs_in_[at(op)] != kNone) {
    waits.in = op_needs_in_[at(op)];
    start = std::max(start, in_end_[at(waits.in)]);
  }
  op_step_[at(op)] = static_cast<std::int32_t>(steps_.size());
  op_start_[at(op)] = start;
  push(StepKind::op, table_.compute, op, start, op_time_[at(op)], waits);
  op_end_[at(op)] = steps_.back().end;
  host_end_[at(op)] = op_end_[at(op)];
  return true;
}

void Evaluator::issue_host_op(OpId op) {
  Pending waits;
  Nanos start = ready_[at(table_.host)];
  for (std::int32_t i = host_operand_start_[at(op)]; i < host_operand_start_[at(op) + 1]; i += 2) {
    const GapId before = host_operand_gaps_[at(i)];
    const GapId after = host_operand_gaps_[at(i) + 1];
    if (before != kNone && has_out_[at(before)]) {
      const bool wraps = index_.gaps()[at(before)].wraps;
      const std::int32_t out = out_position_[at(before)] + (wraps ? 0 : outs_count());
      waits.out = std::max(waits.out, out);
      start = std::max(start, extended_out_end(out));
    }
    // The host bytes it writes were last read by the previous iteration's copy-in.
    if (after != kNone && has_in_[at(after)] && !index_.gaps()[at(after)].wraps) {
      const bool later = waits.in_previous == kNone ||
                         previous_in_end_[at(after)] > previous_in_end_[at(waits.in_previous)];
      if (later) waits.in_previous = after;
      start = std::max(start, previous_in_end_[at(after)]);
    }
  }
  op_step_[at(op)] = static_cast<std::int32_t>(steps_.size());
  op_start_[at(op)] = ready_[at(table_.compute)];
  push(StepKind::op, table_.host, op, start, op_time_[at(op)], waits);
  host_end_[at(op)] = steps_.back().end;
  op_end_[at(op)] = ready_[at(table_.compute)];  // for waits on the compute stream up to here
}

void Evaluator::issue_copies_out(OpId op) {
  for (std::int32_t j = outs_before_[at(op)]; j < outs_before_[at(op) + 1]; ++j) {
    const GapId g = outs_[at(j)];
    const Gap& gap = index_.gaps()[at(g)];
    Pending waits;
    waits.op = ops_ + op;
    Nanos start = std::max(ready_[at(table_.out)], op_end_[at(op)]);
    if (gap.kind == GapKind::download && !gap.wraps) {
      waits.host = gap.to;  // of the previous iteration: it read the same host bytes
      start = std::max(start, previous_host_end_[at(gap.to)]);
    }
    out_step_[at(j)] = static_cast<std::int32_t>(steps_.size());
    push(StepKind::copy_out, table_.out, g, start, out_time_[at(gap.tensor)], waits);
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
    if (p.op != kNone) {
      const bool now = p.op >= ops_;
      const OpId device = device_op_at_or_before_[at(now ? p.op - ops_ : p.op)];
      if (device != kNone) {
        set(step, table_.compute, op_step_[at(device)], now ? 0 : -1);
      } else if (now) {
        // No device op in this iteration yet: the last of the previous one.
        set(step, table_.compute, op_step_[at(device_op_at_or_before_[at(ops_ - 1)])], -1);
      }
    }
    if (p.out != kNone) {
      const bool now = p.out >= outs_count();
      set(step, table_.out, out_step_[at(now ? p.out - outs_count() : p.out)], now ? 0 : -1);
    }
    if (p.in != kNone) set(step, table_.in, in_step_[at(p.in)], 0);
    if (p.in_previous != kNone) set(step, table_.in, in_step_[at(p.in_previous)], -1);
    if (p.host != kNone) {
      const bool now = p.host >= ops_;
      set(step, table_.host, op_step_[at(now ? p.host - ops_ : p.host)], now ? 0 : -1);
    }
  }
}

}  // namespace tidepool
