// Bringing a value to where an op needs it: by a copy of a version the other side holds, or by
// running its producer again. Part of the Expander; Note [Expansion].
#include <fmt/format.h>

#include "base/at.h"
#include "lower/expand.h"

namespace tidepool {

/// Refuses a second place of a pinned tensor.
bool Expander::may_have_another_place(TensorId t) {
  if (!program_.tensors[at(t)].pinned) return true;
  refuse(fmt::format("recomputation needs a second place for pinned tensor '{}'",
                     program_.tensors[at(t)].name));
  return false;
}

/// The tensor is needed again later in the version asked for.
bool Expander::awaits(TensorId t, std::int32_t version) const {
  const State& s = state_[at(t)];
  return s.open_gap != kNone && s.device == kNone &&
         (s.at_start ? 0 : index_.gaps()[at(s.open_gap)].version) == version;
}

/// From its next life on the device the tensor never leaves it again in this iteration, nor at the
/// iteration's end: that life is the one the next iteration starts with.
bool Expander::is_last_life(TensorId t) const {
  const State& s = state_[at(t)];
  if (s.first == kNone || out_->lives[at(s.first)].space != 0) return false;
  const GapId end = index_.first_gap(t) + static_cast<GapId>(index_.gaps(t).size());
  for (GapId g = s.open_gap + 1; g < end; ++g) {
    if (decision(g) != Decision::keep) return false;
  }
  return true;
}

LifeId Expander::lasting_life(TensorId t) {
  if (!is_last_life(t)) return new_life(t, 0);
  life(state(t).first).crosses = true;
  return state(t).first;
}

LifeId Expander::copy_in(TensorId t, bool stays) {
  State& s = state(t);
  if (!stays && !may_have_another_place(t)) return kNone;
  const LifeId target = stays ? lasting_life(t) : new_life(t, 0);
  const auto id = static_cast<MoveId>(out_->moves.size());
  Move& move = out_->moves.emplace_back();
  move.tensor = t;
  if (stays) move.gap = s.open_gap;
  move.call = next_call();
  move.source = s.host_source;
  move.source_call = s.host_source_call;
  move.device = target;
  move.host = s.host;
  s.host_reader = id;
  out_->ins.push_back(id);
  life(target).begin_move = id;
  life(s.host).end_move = id;
  if (const CopyHint* hint = hints_.of(move.gap); hint != nullptr && hint->device_offset) {
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
  if (id != kNone) keep_output(t, version, id);
  return id;
}

/// A life of its own that holds this version, for a clone that will change it.
LifeId Expander::fresh_copy(TensorId t, std::int32_t version) {
  State& s = state(t);
  if (s.host != kNone && s.host_version == version) return copy_in(t, false);
  // Hidden from the tensor's open gap, so that the result does not become its life.
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
  if (alone_at_ != kNone) return kNone;
  if (program_.single_placements) {
    // What it needs and makes may have a place of its own already.
    return refuse(
        fmt::format("op '{}' cannot run again for tensor '{}': tensors may have one "
                    "place at a time",
                    op.name, program_.tensors[at(t)].name));
  }
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
      const bool stays = awaits(x, version_written_[first + k]);
      if (stays || may_have_another_place(x)) operand = stays ? lasting_life(x) : new_life(x, 0);
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

}  // namespace tidepool
