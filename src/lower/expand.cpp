#include "lower/expand.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/at.h"
#include "lower/expanding/separate_lives.h"

namespace tidepool {

std::string why_unplannable(const Program& program) {
  for (const Op& op : program.ops) {
    if (op.device != 0) {
      return fmt::format("op '{}' runs on device {}: plans are made for one device", op.name,
                         op.device);
    }
    if (op.place != OpPlace::host) continue;
    for (const Access& access : op.accesses) {
      const Tensor& tensor = program.tensors[at(access.tensor)];
      if (!tensor.persistent) continue;
      return fmt::format("op '{}', tensor '{}': host ops on persistent tensors are not supported",
                         op.name, tensor.name);
    }
  }
  return {};
}

Expander::Expander(const Program& program, const AccessIndex& index, std::vector<SpaceId> away)
    : program_(program),
      index_(index),
      away_(std::move(away)),
      hints_(program, index),
      unsupported_(why_unplannable(program)),
      state_(program.tensors.size()) {
  away_.resize(program.tensors.size(), 1);
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
    }
    if (const OpId op = program.tensors[at(t)].released_at; op != kNone) {
      released_by_.resize(program.ops.size());
      released_by_[at(op)].push_back(t);
    }
  }
  producer_start_.push_back(static_cast<std::int32_t>(producers_.size()));
}

Decision Expander::decision(GapId gap) const { return strategy_->gaps[at(gap)]; }

LifeId Expander::refuse(std::string why) {
  if (why_not_.empty()) why_not_ = std::move(why);
  return kNone;
}

/// Nothing of an earlier strategy is left behind this, but what is kept by tensor.
void Expander::begin(const Strategy& strategy, Expansion& out) {
  strategy_ = &strategy;
  out_ = &out;
  out.calls.clear();
  out.moves.clear();
  out.outs.clear();
  out.ins.clear();
  out.host_turns.clear();
  out.lives.clear();
  out.operands.clear();
  out.clones = 0;
  temporaries_.clear();
  operand_stack_.clear();
  op_call_.clear();
  why_not_.clear();
}

void Expander::forget_all_tensors() {
  out_->boundary.assign(program_.tensors.size(), kNone);
  state_.assign(program_.tensors.size(), State{});
}

std::string Expander::expand(const Strategy& strategy, Expansion& out) {
  if (!unsupported_.empty()) return unsupported_;
  begin(strategy, out);
  forget_all_tensors();
  if (std::string why = hints_.read(strategy); !why.empty()) return why;
  const auto tensors = static_cast<TensorId>(program_.tensors.size());
  for (TensorId t = 0; t < tensors; ++t) start_iteration(t);
  for (OpId op = 0; op < static_cast<OpId>(program_.ops.size()); ++op) {
    if (!run_op(op)) return std::move(why_not_);
  }
  for (TensorId t = 0; t < tensors; ++t) finish(t);
  find_previous_sources();
  hints_.resolve(out.moves, op_call_);
  if (program_.single_placements) separate_lives(program_.tensors.size(), out);
  return std::move(why_not_);
}

bool Expander::expand_tensor(const Strategy& strategy, TensorId t, Expansion& out) {
  begin(strategy, out);
  out.boundary.resize(program_.tensors.size());
  state(t) = {};
  hints_.forget();
  start_iteration(t);
  bool possible = true;
  for (const TensorAccess& access : index_.accesses(t)) {
    alone_at_ = access.op;
    const auto k = at(access.operand);
    const LifeId operand = bring_operand(access.op, k);
    possible = operand != kNone;
    if (!possible) break;
    use_operand(access.op, k, operand, call_of(access.op));
    out.operands.push_back(operand);
    possible = leave_operand(access.op, k, call_of(access.op));
    if (!possible) break;
  }
  alone_at_ = kNone;
  if (!possible) return false;
  if (const OpId op = program_.tensors[at(t)].released_at; op != kNone) release(t, call_of(op));
  finish(t);
  find_previous_sources();
  return true;
}

/// Copies that hints want right before an op.
bool Expander::follow_hints(OpId before) {
  while (const Hints::Due* due = hints_.next_due(before)) {
    const GapId g = due->gap;
    const Gap& gap = index_.gaps()[at(g)];
    if (!due->in) {
      copy_out(g, static_cast<CallId>(out_->calls.size()) - 1);
    } else if (state(gap.tensor).device == kNone) {
      const std::int32_t version = gap.wraps ? 0 : gap.version;
      if (bring_to_device(gap.tensor, version) == kNone) return false;
    }
  }
  return true;
}

void Expander::start_iteration(TensorId t) {
  if (!program_.tensors[at(t)].persistent) return;
  State& s = state(t);
  const GapId wrap = index_.first_gap(t) + static_cast<GapId>(index_.gaps(t).size()) - 1;
  const bool decided = index_.gaps()[at(wrap)].kind != GapKind::kept;
  const bool away =
      decided && (decision(wrap) == Decision::swap || decision(wrap) == Decision::drop);
  s.open_gap = wrap;
  s.at_start = true;
  s.first = new_life(t, away ? away_[at(t)] : SpaceId{0});
  if (away) {
    s.host = s.first;
    s.host_version = 0;
  } else {
    s.device = s.first;
    s.device_version = 0;
  }
}

LifeId Expander::new_life(TensorId tensor, SpaceId space) {
  Life& life = out_->lives.emplace_back();
  life.tensor = tensor;
  life.space = space;
  return static_cast<LifeId>(out_->lives.size()) - 1;
}

void Expander::use(LifeId id, CallId call) {
  // A life that lives on from here into the next iteration ends there.
  if (!life(id).crosses) life(id).last_call = call;
}

/// Where the op finds its operand.
LifeId Expander::bring_operand(OpId id, std::size_t k) {
  const Op& op = program_.ops[at(id)];
  const bool on_host = op.place == OpPlace::host;
  const TensorId t = op.accesses[k].tensor;
  if (op.accesses[k].mode != AccessMode::write) {
    const std::int32_t version = version_read_[at(access_start_[at(id)]) + k];
    return on_host ? bring_to_host(t, version) : bring_to_device(t, version);
  }
  const State& s = state(t);
  if (const LifeId resident = on_host ? s.host : s.device; resident != kNone) return resident;
  return on_host ? new_life(t, away_[at(t)]) : lasting_life(t);
}

void Expander::use_operand(OpId id, std::size_t k, LifeId operand, CallId call) {
  const Op& op = program_.ops[at(id)];
  const bool on_host = op.place == OpPlace::host;
  const std::size_t access = at(access_start_[at(id)]) + k;
  State& s = state(op.accesses[k].tensor);
  const bool resident = operand == (on_host ? s.host : s.device);
  if (op.accesses[k].mode == AccessMode::write && !resident) life(operand).begin_call = call;
  use(operand, call);
  const std::int32_t version =
      version_written_[access] != kNone ? version_written_[access] : version_read_[access];
  if (on_host) {
    s.host = operand;
    s.host_version = version;
    use_host_bytes(op.accesses[k].tensor, call);
    if (op.accesses[k].mode != AccessMode::read) s.host_source = kNone;
  } else {
    s.device = operand;
    s.device_version = version;
  }
  s.open_gap = kNone;
  s.at_start = false;
}

/// Copies in of recomputations may read them between host ops: each waits for the one before.
void Expander::use_host_bytes(TensorId t, CallId call) {
  State& s = state(t);
  s.host_source_call = call;
  if (s.host_reader != kNone && out_->moves[at(s.host_reader)].host == s.host) {
    out_->host_turns.push_back({call, s.host_reader});
  }
}

bool Expander::leave_operand(OpId id, std::size_t k, CallId call) {
  const GapId gap = gap_after_[at(access_start_[at(id)]) + k];
  if (gap != kNone) return begin_gap(gap, call);
  const Op& op = program_.ops[at(id)];
  end_last_life(op.accesses[k].tensor, op.place);
  return true;
}

bool Expander::run_op(OpId id) {
  const std::size_t operands = program_.ops[at(id)].accesses.size();
  const std::size_t base = operand_stack_.size();
  if (!follow_hints(id)) return false;
  for (std::size_t k = 0; k < operands; ++k) {
    const LifeId operand = bring_operand(id, k);
    if (operand == kNone) return false;
    operand_stack_.push_back(operand);
  }
  const auto call = static_cast<CallId>(out_->calls.size());
  out_->calls.push_back({id, false, static_cast<std::int32_t>(out_->operands.size())});
  op_call_.push_back(call);
  for (std::size_t k = 0; k < operands; ++k) {
    out_->operands.push_back(operand_stack_[base + k]);
    use_operand(id, k, operand_stack_[base + k], call);
  }
  operand_stack_.resize(base);
  temporaries_.clear();
  for (std::size_t k = 0; k < operands; ++k) {
    if (!leave_operand(id, k, call)) return false;
  }
  if (!released_by_.empty()) {
    for (const TensorId t : released_by_[at(id)]) release(t, call);
  }
  return true;
}

void Expander::release(TensorId t, CallId call) {
  State& s = state(t);
  use(s.held, call);
  if (s.held == s.host) use_host_bytes(t, call);
  s.device = kNone;
}

/// What stays taken can be read by recomputations until it is released.
void Expander::end_last_life(TensorId t, OpPlace place) {
  State& s = state(t);
  if (program_.tensors[at(t)].released_at != kNone) {
    s.held = place == OpPlace::host ? s.host : s.device;
    if (place == OpPlace::device) return;
  }
  s.device = kNone;
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
  if (gap.kind == GapKind::kept) {
    return decision(g) == Decision::keep ||
           refuse_gap(program_.tensors[at(t)].pinned
                          ? "is pinned"
                          : "its home is the device: it stays there over the iteration's end");
  }
  const Decision chosen = gap.kind == GapKind::download ? Decision::swap : decision(g);
  switch (chosen) {
    case Decision::keep:
      return true;
    case Decision::drop:
      if (gap.dead) break;
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
      if (const CopyHint* hint = hints_.of(g); hint != nullptr && hint->out_trigger) return true;
      copy_out(g, call);
      break;
  }
  s.device = kNone;
  return true;
}

/// The tensor's value goes away after this call: it leaves the device.
void Expander::copy_out(GapId g, CallId call) {
  const Gap& gap = index_.gaps()[at(g)];
  State& s = state(gap.tensor);
  const LifeId host = gap.wraps ? s.first : new_life(gap.tensor, away_[at(gap.tensor)]);
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

void Expander::finish(TensorId t) {
  const State& s = state(t);
  if (s.first == kNone) return;
  out_->boundary[at(t)] = s.first;
  Life& first = life(s.first);
  const bool away = first.space != 0;
  if (!away && !first.crosses) first.always = true;
  // Filled at the iteration's end and only read after the last one: its bytes stay taken.
  if (away && first.end_move == kNone && first.last_call == kNone) first.always = true;
}

/// Copies in from host bytes that the previous iteration's end filled.
void Expander::find_previous_sources() {
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
