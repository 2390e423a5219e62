#include "lower/timing/tensor_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/at.h"

namespace tidepool {

TensorParts::TensorParts(const Program& program, const AccessIndex& index, Expander& expander,
                         const TimingProblems& problems)
    : program_(program), index_(index), expander_(expander), problems_(problems) {
  std::int32_t operands = 0;
  for (const Op& op : program.ops) {
    operand_start_.push_back(operands);
    operands += static_cast<std::int32_t>(op.accesses.size());
  }
  for (TensorId t = 0; t < static_cast<TensorId>(program.tensors.size()); ++t) {
    const auto accesses = index.accesses(t);
    const bool on_host = std::any_of(accesses.begin(), accesses.end(), [&](const TensorAccess& a) {
      return program.ops[at(a.op)].place == OpPlace::host;
    });
    if (on_host) host_tensors_.push_back(t);
  }
  parts_.resize(program.tensors.size());
  last_in_.assign(program.tensors.size(), kNone);
}

const TimingProblem* TensorParts::problem_of(const Strategy& strategy) {
  if (!strategy.hints.empty() || !expander_.tensors_are_independent()) return nullptr;
  if (!find_changed(strategy)) return nullptr;
  take_algorithms(strategy);
  // Beyond this many it is quicker to sort all copies.
  constexpr std::size_t kFew = 8;
  const bool few = changed_.size() <= kFew;
  for (const TensorId t : changed_) {
    if (few) list(t, Listing::remove);
    if (!change(strategy, t)) {
      known_ = false;
      return nullptr;
    }
    if (few) list(t, Listing::insert);
  }
  if (!few) list_all();
  number_copies();
  TimingProblems::finish(load_, problem_);
  return &problem_;
}

/// False where something is recomputed.
bool TensorParts::find_changed(const Strategy& strategy) {
  const auto& now = strategy.gaps;
  if (!now.empty() &&
      std::memchr(now.data(), static_cast<int>(Decision::recompute), now.size()) != nullptr) {
    return false;
  }
  changed_.clear();
  if (!known_) {
    known_ = true;
    strategy_.gaps = now;
    strategy_.algorithms.clear();
    problem_.calls.assign(program_.ops.size(), {});
    load_.assign(program_.ops.size() + 1, 0);
    outs_.clear();
    ins_.clear();
    needing_.clear();
    for (TensorId t = 0; t < static_cast<TensorId>(parts_.size()); ++t) {
      part(t).moves.clear();
      part(t).lives.clear();
      if (!index_.accesses(t).empty()) changed_.push_back(t);
    }
    return true;
  }
  constexpr std::size_t kBlock = 64;
  for (std::size_t g = 0; g < now.size(); g += kBlock) {
    const std::size_t end = std::min(g + kBlock, now.size());
    if (std::memcmp(&now[g], &strategy_.gaps[g], end - g) == 0) continue;
    for (std::size_t i = g; i < end; ++i) {
      if (now[i] == strategy_.gaps[i]) continue;
      const TensorId t = index_.gaps()[i].tensor;
      if (changed_.empty() || changed_.back() != t) changed_.push_back(t);
      strategy_.gaps[i] = now[i];
    }
  }
  return true;
}

void TensorParts::take_algorithms(const Strategy& strategy) {
  if (strategy_.algorithms == strategy.algorithms) return;
  const bool all = strategy_.algorithms.size() != strategy.algorithms.size();
  if (all) problem_.compute_time = Nanos{0};
  for (OpId op = 0; op < static_cast<OpId>(program_.ops.size()); ++op) {
    if (!all && strategy_.algorithms[at(op)] == strategy.algorithms[at(op)]) continue;
    TimedCall& call = problem_.calls[at(op)];
    call.on_device = program_.ops[at(op)].place == OpPlace::device;
    if (call.on_device && !all) problem_.compute_time -= call.time;
    problems_.set_algorithm(strategy, op, call);
    if (call.on_device) problem_.compute_time += call.time;
  }
  strategy_.algorithms = strategy.algorithms;
}

bool TensorParts::change(const Strategy& strategy, TensorId t) {
  Part& p = part(t);
  for (const Life& life : p.lives) problems_.add_life(p.view(), life, -1, problem_, load_);
  if (!expander_.expand_tensor(strategy, t, x_)) return false;
  p.moves.assign(x_.moves.begin(), x_.moves.end());
  p.lives.assign(x_.lives.begin(), x_.lives.end());
  p.operands.assign(x_.operands.begin(), x_.operands.end());
  p.position.resize(p.moves.size());
  for (const Life& life : p.lives) problems_.add_life(p.view(), life, 1, problem_, load_);
  return true;
}

/// Copies out are issued in the order of the accesses before them, copies in are needed in the
/// order of those behind them.
std::int32_t TensorParts::operand_of(const Move& move) const {
  const auto accesses = index_.accesses(move.tensor);
  const auto g = at(move.gap - index_.first_gap(move.tensor));
  const TensorAccess& access = move.out ? accesses[g] : accesses[(g + 1) % accesses.size()];
  return operand_start_[at(access.op)] + access.operand;
}

/// A tensor's copies into the lists, or out of them.
void TensorParts::list(TensorId t, Listing how) {
  const auto& moves = part(t).moves;
  for (MoveId id = 0; id < static_cast<MoveId>(moves.size()); ++id) {
    const Move& move = moves[at(id)];
    std::vector<Copy>& all = move.out ? outs_ : ins_;
    const Copy copy{operand_of(move), t, id};
    if (how == Listing::append) {
      all.push_back(copy);
      continue;
    }
    const auto place = std::lower_bound(all.begin(), all.end(), copy);
    if (how == Listing::insert) {
      all.insert(place, copy);
    } else {
      all.erase(place);
    }
  }
}

void TensorParts::list_all() {
  outs_.clear();
  ins_.clear();
  for (TensorId t = 0; t < static_cast<TensorId>(parts_.size()); ++t) list(t, Listing::append);
  std::sort(outs_.begin(), outs_.end());
  std::sort(ins_.begin(), ins_.end());
}

void TensorParts::number_copies() {
  problem_.clear_copies();
  for (const Copy& copy : outs_) {
    Part& p = part(copy.tensor);
    p.position[at(copy.move)] = problem_.out_count();
    problem_.outs.push_back(problems_.timed_out(p.view(), copy.move));
    problem_.out_time += problem_.outs.back().time;
  }
  for (const CallId c : needing_) problem_.calls[at(c)].needs_out = kNone;
  needing_.clear();
  for (const Copy& copy : outs_) {
    const TimingPart p = part(copy.tensor).view();
    TimingProblems::add_needed_out(p, copy.move, problem_);
    const Life& life = p.lives[at(p.moves[at(copy.move)].device)];
    if (life.begin_call != kNone) needing_.push_back(life.begin_call);
  }
  for (const Copy& copy : ins_) last_in_[at(copy.tensor)] = kNone;
  for (const Copy& copy : ins_) {
    Part& p = part(copy.tensor);
    const auto position = static_cast<std::int32_t>(problem_.ins.size());
    p.position[at(copy.move)] = position;
    TimedIn in = problems_.timed_in(p.view(), copy.move, problem_);
    in.before = std::exchange(last_in_[at(copy.tensor)], position);
    problem_.in_time += in.time;
    problem_.ins.push_back(in);
    problem_.free_ins.push_back(position);
  }
  for (const TensorId t : host_tensors_) {
    const TimingPart p = part(t).view();
    const auto accesses = index_.accesses(t);
    for (std::size_t k = 0; k < accesses.size(); ++k) {
      const OpId op = accesses[k].op;
      if (problem_.calls[at(op)].on_device) continue;
      TimingProblems::add_host_waits(p, call_of(op), p.lives[at(part(t).operands[k])], problem_);
    }
  }
  std::stable_sort(problem_.host_waits.begin(), problem_.host_waits.end(),
                   [](const HostWait& a, const HostWait& b) { return a.call < b.call; });
}

}  // namespace tidepool
