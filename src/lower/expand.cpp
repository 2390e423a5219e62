#include "lower/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace tidepool {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

}  // namespace

Expander::Expander(const Program& program, const AccessIndex& index)
    : program_(program), index_(index) {
  std::int32_t operands = 0;
  for (const Op& op : program.ops) {
    access_start_.push_back(operands);
    operands += static_cast<std::int32_t>(op.accesses.size());
  }
  version_read_.assign(at(operands), kNone);
  version_written_.assign(at(operands), kNone);
  gap_after_.assign(at(operands), kNone);
  for (TensorId t = 0; t < static_cast<TensorId>(program.tensors.size()); ++t) {
    producer_start_.push_back(static_cast<std::int32_t>(producers_.size()));
    const auto accesses = index.accesses(t);
    const auto gaps = static_cast<std::size_t>(index.gaps(t).size());
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const std::size_t operand = at(access_start_[at(accesses[i].op)] + accesses[i].operand);
      version_read_[operand] = accesses[i].version_read;
      version_written_[operand] = accesses[i].version_written;
      if (i < gaps) gap_after_[operand] = index.first_gap(t) + static_cast<GapId>(i);
      if (accesses[i].version_written != kNone) producers_.push_back(accesses[i].op);
      const bool on_host = program.ops[at(accesses[i].op)].place == OpPlace::host;
      if (on_host && program.tensors[at(t)].persistent) persistent_on_host_ = t;
    }
  }
  producer_start_.push_back(static_cast<std::int32_t>(producers_.size()));
}

Decision Expander::decision(GapId gap) const { return strategy_->gaps[at(gap)]; }

LifeId Expander::refuse(std::string why) {
  if (why_not_.empty()) why_not_ = std::move(why);
  return kNone;
}

/// Nothing of an earlier strategy is left behind this.
void Expander::begin(const Strategy& strategy, Expansion& out) {
  strategy_ = &strategy;
  out_ = &out;
  out.calls.clear();
  out.moves.clear();
  out.outs.clear();
  out.ins.clear();
  out.lives.clear();
  out.operands.clear();
  out.boundary.assign(program_.tensors.size(), kNone);
  out.clones = 0;
  state_.assign(program_.tensors.size(), State{});
  temporaries_.clear();
  operand_stack_.clear();
  hint_of_gap_.clear();
  due_.clear();
  next_due_ = 0;
  op_call_.clear();
  why_not_.clear();
}

std::string Expander::expand(const Strategy& strategy, Expansion& out) {
  if (persistent_on_host_ != kNone) {
    return fmt::format("tensor '{}': host ops on persistent tensors are not supported",
                       program_.tensors[at(persistent_on_host_)].name);
  }
  begin(strategy, out);
  if (!read_hints()) return std::move(why_not_);
  start_iteration();
  for (OpId op = 0; op < static_cast<OpId>(program_.ops.size()); ++op) {
    if (!run_op(op)) return std::move(why_not_);
  }
  finish();
  resolve_hints();
  return std::move(why_not_);
}

const CopyHint* Expander::hint_of(GapId gap) const {
  if (hint_of_gap_.empty() || gap == kNone || hint_of_gap_[at(gap)] == kNone) return nullptr;
  return &strategy_->hints[at(hint_of_gap_[at(gap)])];
}

bool Expander::read_hints() {
  if (strategy_->hints.empty()) return true;
  hint_of_gap_.assign(index_.gaps().size(), kNone);
  for (std::size_t i = 0; i < strategy_->hints.size(); ++i) {
    const CopyHint& hint = strategy_->hints[i];
    if (!check_hint(hint)) return false;
    hint_of_gap_[at(hint.gap)] = static_cast<std::int32_t>(i);
    if (hint.out_trigger) due_.push_back({*hint.out_trigger, hint.gap, false});
    if (hint.in_barrier) due_.push_back({*hint.in_barrier, hint.gap, true});
  }
  std::sort(due_.begin(), due_.end(), [](const Due& a, const Due& b) {
    return std::tie(a.before, a.in, a.gap) < std::tie(b.before, b.in, b.gap);
  });
  return true;
}

bool Expander::check_hint(const CopyHint& hint) {
  if (hint.gap < 0 || at(hint.gap) >= index_.gaps().size()) {
    refuse(fmt::format("a hint names gap {} of {}", hint.gap, index_.gaps().size()));
    return false;
  }
  const Gap& gap = index_.gaps()[at(hint.gap)];
  const auto bad = [&](std::string_view what) {
    refuse(fmt::format("hint for tensor '{}' after op '{}': {}",
                       program_.tensors[at(gap.tensor)].name, program_.ops[at(gap.from)].name,
                       what));
    return false;
  };
  if (hint_of_gap_[at(hint.gap)] != kNone) return bad("the gap has two hints");
  const Decision chosen = decision(hint.gap);
  if (gap.kind != GapKind::device || (chosen != Decision::swap && chosen != Decision::drop)) {
    return bad("the gap is neither swapped nor dropped");
  }
  if (chosen == Decision::drop && (hint.out_trigger || hint.out_barrier)) {
    return bad("a dropped gap has no copy out");
  }
  if (hint.device_offset && *hint.device_offset < 0) return bad("the offset is negative");
  // Positions in the iteration in which the gap begins; those of the next one lie behind.
  const auto ops = static_cast<std::int32_t>(program_.ops.size());
  const std::int32_t end = gap.to + (gap.wraps ? ops : 0);
  const auto position = [&](OpId op) { return gap.wraps && op <= gap.from ? op + ops : op; };
  for (const auto& op : {hint.out_trigger, hint.in_trigger, hint.out_barrier, hint.in_barrier}) {
    if (!op) continue;
    if (*op < 0 || *op >= ops || program_.ops[at(*op)].place != OpPlace::device) {
      return bad("a trigger or barrier is no device op");
    }
    if (position(*op) <= gap.from || position(*op) > end) {
      return bad(fmt::format("op '{}' is not in the gap", program_.ops[at(*op)].name));
    }
  }
  const std::int32_t out = hint.out_trigger ? position(*hint.out_trigger) : gap.from + 1;
  if (out >= ops)
    return bad("the copy out must be issued in the iteration in which the gap begins");
  for (const auto& op : {hint.in_trigger, hint.out_barrier, hint.in_barrier}) {
    if (op && position(*op) < out) {
      return bad("the copy out is issued after what should follow it");
    }
  }
  if (hint.in_barrier && gap.wraps && position(*hint.in_barrier) < ops) {
    return bad("the copy in is awaited in the iteration before its own");
  }
  if (hint.in_barrier && hint.in_trigger &&
      position(*hint.in_barrier) < position(*hint.in_trigger)) {
    return bad("the copy in is issued after the op that waits for it");
  }
  return true;
}

/// Copies that hints want right before an op.
bool Expander::follow_hints(OpId before) {
  for (; next_due_ < due_.size() && due_[next_due_].before == before; ++next_due_) {
    const GapId g = due_[next_due_].gap;
    const Gap& gap = index_.gaps()[at(g)];
    if (!due_[next_due_].in) {
      copy_out(g, static_cast<CallId>(out_->calls.size()) - 1);
    } else if (state(gap.tensor).device == kNone) {
      const std::int32_t version = gap.wraps ? 0 : gap.version;
      if (bring_to_device(gap.tensor, version) == kNone) return false;
    }
  }
  return true;
}

/// Ops become calls, now that all calls are known.
void Expander::resolve_hints() {
  if (hint_of_gap_.empty()) return;
  for (Move& move : out_->moves) {
    const CopyHint* hint = hint_of(move.gap);
    if (hint == nullptr) continue;
    const Gap& gap = index_.gaps()[at(move.gap)];
    if (!move.out && hint->in_trigger) {
      move.trigger = op_call_[at(*hint->in_trigger)];
      move.trigger_previous = gap.wraps && *hint->in_trigger > gap.from;
      // What the op waiting for it needs first (recomputations) comes before the op itself.
      if (!move.trigger_previous) move.trigger = std::min(move.trigger, move.call);
    }
    if (move.out && hint->out_barrier) {
      move.barrier = op_call_[at(*hint->out_barrier)];
      move.barrier_next = gap.wraps && *hint->out_barrier <= gap.from;
    }
  }
}

void Expander::start_iteration() {
  for (TensorId t = 0; t < static_cast<TensorId>(program_.tensors.size()); ++t) {
    State& s = state(t);
    if (!program_.tensors[at(t)].persistent) continue;
    const GapId wrap = index_.first_gap(t) + static_cast<GapId>(index_.gaps(t).size()) - 1;
    const bool away = decision(wrap) == Decision::swap || decision(wrap) == Decision::drop;
    s.open_gap = wrap;
    s.at_start = true;
    s.first = new_life(t, away);
    if (away) {
      s.host = s.first;
      s.host_version = 0;
    } else {
      s.device = s.first;
      s.device_version = 0;
    }
  }
}

LifeId Expander::new_life(TensorId tensor, bool on_host) {
  Life& life = out_->lives.emplace_back();
  life.tensor = tensor;
  life.on_host = on_host;
  return static_cast<LifeId>(out_->lives.size()) - 1;
}

void Expander::use(LifeId id, CallId call) {
  // A life that lives on from here into the next iteration ends there.
  if (!life(id).crosses) life(id).last_call = call;
}

/// The tensor is needed again later in the version asked for.
bool Expander::awaits(TensorId t, std::int32_t version) const {
  const State& s = state_[at(t)];
  return s.open_gap != kNone && s.device == kNone &&
         (s.at_start ? 0 : index_.gaps()[at(s.open_gap)].version) == version;
}

/// From its next stay on the device the tensor never leaves it again in this iteration, nor at the
/// iteration's end: that stay is the one the next iteration starts with.
bool Expander::is_last_stay(TensorId t) const {
  const State& s = state_[at(t)];
  if (s.first == kNone || out_->lives[at(s.first)].on_host) return false;
  const GapId end = index_.first_gap(t) + static_cast<GapId>(index_.gaps(t).size());
  for (GapId g = s.open_gap + 1; g < end; ++g) {
    if (decision(g) != Decision::keep) return false;
  }
  return true;
}

LifeId Expander::life_for_stay(TensorId t) {
  if (!is_last_stay(t)) return new_life(t, false);
  life(state(t).first).crosses = true;
  return state(t).first;
}

LifeId Expander::copy_in(TensorId t, bool stays) {
  State& s = state(t);
  const LifeId target = stays ? life_for_stay(t) : new_life(t, false);
  const auto id = static_cast<MoveId>(out_->moves.size());
  Move& move = out_->moves.emplace_back();
  move.tensor = t;
  if (stays) move.gap = s.open_gap;
  move.call = static_cast<CallId>(out_->calls.size());
  move.source = s.host_source;
  move.source_call = s.host_source_call;
  move.device = target;
  move.host = s.host;
  out_->ins.push_back(id);
  life(target).begin_move = id;
  life(s.host).end_move = id;
  if (const CopyHint* hint = hint_of(move.gap); hint != nullptr && hint->device_offset) {
    life(target).fixed_offset = *hint->device_offset;
  }
  return target;
}

LifeId Expander::bring_to_device(TensorId t, std::int32_t version) {
  State& s = state(t);
  if (s.device != kNone && s.device_version == version) return s.device;
  for (const Temporary& temporary : temporaries_) {
    if (temporary.tensor == t && temporary.version == version) return temporary.life;
  }
  if (s.host == kNone || s.host_version != version) return recompute(t, version);
  const LifeId id = copy_in(t, awaits(t, version));
  keep_output(t, version, id);
  return id;
}

/// A life of its own that holds this version, for a clone that will change it.
LifeId Expander::fresh_copy(TensorId t, std::int32_t version) {
  State& s = state(t);
  if (s.host != kNone && s.host_version == version) return copy_in(t, false);
  // Hidden from the tensor's open gap, so that the result does not become its stay.
  const GapId open = s.open_gap;
  s.open_gap = kNone;
  const LifeId id = recompute(t, version);
  state(t).open_gap = open;
  std::erase_if(temporaries_, [&](const Temporary& x) { return x.life == id; });
  return id;
}

/// After a copy-in or a clone: the value stays until its tensor's next access, or it is a
/// temporary.
void Expander::keep_output(TensorId t, std::int32_t version, LifeId id) {
  if (awaits(t, version)) {
    state(t).device = id;
    state(t).device_version = version;
  } else {
    temporaries_.push_back({t, version, id});
  }
}

LifeId Expander::recompute(TensorId t, std::int32_t version) {
  if (version <= 0) {
    return refuse(
        fmt::format("recomputation needs the starting value of tensor '{}', which is gone",
                    program_.tensors[at(t)].name));
  }
  const OpId id = producers_[at(producer_start_[at(t)] + version - 1)];
  const Op& op = program_.ops[at(id)];
  const bool repeats = op.algorithms[at(strategy_->algorithms[at(id)])].deterministic;
  if (!op.recomputable || !repeats || op.place != OpPlace::device) {
    return refuse(fmt::format("op '{}' cannot run again for tensor '{}'", op.name,
                              program_.tensors[at(t)].name));
  }
  // Recursion appends calls of its own; the operands of this one wait on the stack.
  const std::size_t base = operand_stack_.size();
  const std::size_t first = at(access_start_[at(id)]);
  for (std::size_t k = 0; k < op.accesses.size(); ++k) {
    const TensorId x = op.accesses[k].tensor;
    LifeId operand = kNone;
    if (op.accesses[k].mode == AccessMode::read) {
      operand = bring_to_device(x, version_read_[first + k]);
    } else if (op.accesses[k].mode == AccessMode::update) {
      operand = fresh_copy(x, version_read_[first + k]);
    } else {
      operand = awaits(x, version_written_[first + k]) ? life_for_stay(x) : new_life(x, false);
    }
    if (operand == kNone) {
      operand_stack_.resize(base);
      return kNone;
    }
    operand_stack_.push_back(operand);
  }
  const auto call = static_cast<CallId>(out_->calls.size());
  out_->calls.push_back({id, true, static_cast<std::int32_t>(out_->operands.size())});
  ++out_->clones;
  LifeId result = kNone;
  for (std::size_t k = 0; k < op.accesses.size(); ++k) {
    const LifeId operand = operand_stack_[base + k];
    const TensorId x = op.accesses[k].tensor;
    out_->operands.push_back(operand);
    if (op.accesses[k].mode == AccessMode::write) life(operand).begin_call = call;
    use(operand, call);
    if (op.accesses[k].mode == AccessMode::read) continue;
    keep_output(x, version_written_[first + k], operand);
    if (x == t) result = operand;
  }
  operand_stack_.resize(base);
  return result;
}

LifeId Expander::bring_to_host(TensorId t, std::int32_t version) {
  if (state(t).host != kNone && state(t).host_version == version) return state(t).host;
  return refuse(fmt::format("host ops find no copy of tensor '{}'", program_.tensors[at(t)].name));
}

bool Expander::run_op(OpId id) {
  const Op& op = program_.ops[at(id)];
  const bool on_host = op.place == OpPlace::host;
  const std::size_t first = at(access_start_[at(id)]);
  const std::size_t base = operand_stack_.size();
  if (!follow_hints(id)) return false;
  for (std::size_t k = 0; k < op.accesses.size(); ++k) {
    const TensorId t = op.accesses[k].tensor;
    State& s = state(t);
    LifeId operand = on_host ? s.host : s.device;
    if (op.accesses[k].mode != AccessMode::write) {
      operand = on_host ? bring_to_host(t, version_read_[first + k])
                        : bring_to_device(t, version_read_[first + k]);
      if (operand == kNone) return false;
    } else if (operand == kNone) {
      operand = on_host ? new_life(t, true) : life_for_stay(t);
    }
    operand_stack_.push_back(operand);
  }
  const auto call = static_cast<CallId>(out_->calls.size());
  out_->calls.push_back({id, false, static_cast<std::int32_t>(out_->operands.size())});
  op_call_.push_back(call);
  for (std::size_t k = 0; k < op.accesses.size(); ++k) {
    const LifeId operand = operand_stack_[base + k];
    State& s = state(op.accesses[k].tensor);
    out_->operands.push_back(operand);
    const bool resident = operand == (on_host ? s.host : s.device);
    if (op.accesses[k].mode == AccessMode::write && !resident) life(operand).begin_call = call;
    use(operand, call);
    const std::int32_t version = version_written_[first + k] != kNone ? version_written_[first + k]
                                                                      : version_read_[first + k];
    if (on_host) {
      s.host = operand;
      s.host_version = version;
      s.host_source_call = call;
      if (op.accesses[k].mode != AccessMode::read) s.host_source = kNone;
    } else {
      s.device = operand;
      s.device_version = version;
    }
    s.open_gap = kNone;
    s.at_start = false;
  }
  operand_stack_.resize(base);
  temporaries_.clear();
  for (std::size_t k = 0; k < op.accesses.size(); ++k) {
    const GapId gap = gap_after_[first + k];
    if (gap == kNone) {
      state(op.accesses[k].tensor).device = kNone;
    } else if (!begin_gap(gap, call)) {
      return false;
    }
  }
  return true;
}

bool Expander::begin_gap(GapId g, CallId call) {
  const Gap& gap = index_.gaps()[at(g)];
  const TensorId t = gap.tensor;
  State& s = state(t);
  s.open_gap = g;
  const auto name = [&] { return program_.tensors[at(t)].name; };
  const auto refuse_gap = [&](std::string_view what) {
    refuse(fmt::format("tensor '{}' after op '{}': {}", name(), program_.ops[at(gap.from)].name,
                       what));
    return false;
  };
  if (gap.kind == GapKind::upload || gap.kind == GapKind::host) {
    s.device = kNone;
    return true;
  }
  const Decision chosen = gap.kind == GapKind::download ? Decision::swap : decision(g);
  switch (chosen) {
    case Decision::keep:
      return true;
    case Decision::drop:
      if (s.host == kNone || s.host_version != s.device_version) {
        return refuse_gap("dropped, but the host holds no copy of this version");
      }
      if (gap.wraps) {
        if (s.device_version != 0)
          return refuse_gap("dropped over the iteration's end, but changed");
        life(s.first).always = true;
      }
      break;
    case Decision::recompute:
      if (gap.wraps) return refuse_gap("recomputed over the iteration's end");
      break;
    case Decision::swap:
      // With a trigger of its own the value stays on the device until then.
      if (const CopyHint* hint = hint_of(g); hint != nullptr && hint->out_trigger) return true;
      copy_out(g, call);
      break;
  }
  s.device = kNone;
  return true;
}

/// The tensor's value goes to the host after this call, and leaves the device.
void Expander::copy_out(GapId g, CallId call) {
  const Gap& gap = index_.gaps()[at(g)];
  State& s = state(gap.tensor);
  const LifeId host = gap.wraps ? s.first : new_life(gap.tensor, true);
  const auto id = static_cast<MoveId>(out_->moves.size());
  Move& move = out_->moves.emplace_back();
  move.tensor = gap.tensor;
  move.out = true;
  move.gap = g;
  move.call = call;
  move.device = s.device;
  move.host = host;
  out_->outs.push_back(id);
  if (!life(s.device).crosses) life(s.device).end_move = id;
  life(host).begin_move = id;
  if (gap.wraps) life(host).crosses = true;
  s.host = host;
  s.host_version = s.device_version;
  s.host_source = id;
  s.host_source_call = kNone;
  s.device = kNone;
}

void Expander::finish() {
  for (TensorId t = 0; t < static_cast<TensorId>(program_.tensors.size()); ++t) {
    const State& s = state(t);
    if (s.first == kNone) continue;
    out_->boundary[at(t)] = s.first;
    Life& first = life(s.first);
    if (!first.on_host && !first.crosses) first.always = true;
    // Filled at the iteration's end and only read after the last one: its bytes stay taken.
    if (first.on_host && first.end_move == kNone && first.last_call == kNone) first.always = true;
  }
  // Copies out of host bytes that the previous iteration's end filled.
  for (const MoveId id : out_->ins) {
    Move& in = out_->moves[at(id)];
    const Life& host = life(in.host);
    if (host.crosses && in.source == kNone) {
      in.source = host.begin_move;
      in.source_previous = true;
    }
  }
}

}  // namespace tidepool
