#include "planners/toolkit/recomputation.h"

#include <algorithm>

#include "base/at.h"
#include "lower/expand.h"

namespace tidepool {
namespace {

/// The tensor's access by an op that accesses it.
const TensorAccess& access_of(const AccessIndex& index, TensorId tensor, OpId op) {
  const auto accesses = index.accesses(tensor);
  return *std::partition_point(accesses.begin(), accesses.end(),
                               [&](const TensorAccess& a) { return a.op < op; });
}

std::int32_t version_after(const TensorAccess& access) {
  return access.version_written != kNone ? access.version_written : access.version_read;
}

}  // namespace

std::optional<std::vector<OpId>> Recomputation::chain(GapId id, const Strategy& strategy,
                                                      std::size_t longest) {
  const Gap& gap = index_.gaps()[at(id)];
  if (gap.kind != GapKind::device || gap.wraps || gap.dead) return std::nullopt;
  strategy_ = &strategy;
  gap_ = id;
  before_ = gap.to;
  chain_.clear();
  made_.clear();
  sources_.clear();
  depth_ = 0;
  longest_ = longest;
  if (held(gap.tensor).host == gap.version) return std::nullopt;
  if (!run_again({gap.tensor, gap.version})) return std::nullopt;
  return chain_;
}

Nanos Recomputation::time(std::span<const OpId> chain, const Strategy& strategy) const {
  Nanos sum{0};
  for (const OpId op : chain) {
    sum += program_.ops[at(op)].algorithms[at(strategy.algorithms[at(op)])].time;
  }
  return sum;
}

Decision Recomputation::decision(GapId g) const {
  return g == gap_ ? Decision::recompute : strategy_->gaps[at(g)];
}

bool Recomputation::away(GapId g) const {
  const Decision decision = this->decision(g);
  return index_.gaps()[at(g)].kind == GapKind::device &&
         (decision == Decision::swap || decision == Decision::drop);
}

Recomputation::Held Recomputation::held(TensorId t) const {
  Held held;
  const Tensor& tensor = program_.tensors[at(t)];
  const auto accesses = index_.accesses(t);
  const auto gaps = index_.gaps(t);
  const GapId first = index_.first_gap(t);
  if (tensor.persistent) {
    const bool on_host = away(first + static_cast<GapId>(gaps.size()) - 1);
    (on_host ? held.host : held.device) = 0;
  }
  const auto done = static_cast<std::size_t>(
      std::partition_point(accesses.begin(), accesses.end(),
                           [&](const TensorAccess& a) { return a.op < before_; }) -
      accesses.begin());
  for (std::size_t i = 0; i < done; ++i) {
    const std::int32_t version = version_after(accesses[i]);
    const bool on_host = program_.ops[at(accesses[i].op)].place == OpPlace::host;
    const GapId id = first + static_cast<GapId>(i);
    const bool swapped = i < gaps.size() && (gaps[i].kind == GapKind::download ||
                                             (away(id) && decision(id) == Decision::swap));
    if (on_host || swapped) held.host = version;
    bool stays = tensor.released_at >= before_ && !on_host;
    if (i < gaps.size()) {
      stays = gaps[i].kind == GapKind::kept ||
              (gaps[i].kind == GapKind::device && decision(id) == Decision::keep);
    }
    held.device = stays ? version : kNone;
  }
  return held;
}

bool Recomputation::bring(const Value& value) {
  if (made_.contains(value)) return true;
  const Held now = held(value.first);
  if (now.device != value.second && now.host != value.second) return run_again(value);
  sources_.push_back(value.first);
  return true;
}

/// Into bytes of its own: what is on the device is needed as it is.
bool Recomputation::bring_changeable(const Value& value) {
  if (held(value.first).host == value.second) {
    sources_.push_back(value.first);
    return true;
  }
  const bool was_there = made_.contains(value);
  if (!run_again(value)) return false;
  if (!was_there) made_.erase(value);
  return true;
}

bool Recomputation::run_again(const Value& value) {
  if (value.second <= 0 || program_.single_placements) return false;
  if (chain_.size() >= longest_ || depth_ >= longest_) return false;
  const auto accesses = index_.accesses(value.first);
  const OpId id = std::find_if(accesses.begin(), accesses.end(), [&](const TensorAccess& a) {
                    return a.version_written == value.second;
                  })->op;
  const Op& op = program_.ops[at(id)];
  const Algorithm& algorithm = op.algorithms[at(strategy_->algorithms[at(id)])];
  if (!op.recomputable || !algorithm.deterministic || op.place != OpPlace::device) return false;
  ++depth_;
  for (const Access& a : op.accesses) {
    if (a.mode != AccessMode::read && program_.tensors[at(a.tensor)].pinned) return false;
    if (a.mode == AccessMode::write) continue;
    const Value read{a.tensor, access_of(index_, a.tensor, id).version_read};
    if (!(a.mode == AccessMode::read ? bring(read) : bring_changeable(read))) return false;
  }
  --depth_;
  chain_.push_back(id);
  for (const Access& a : op.accesses) {
    if (a.mode == AccessMode::read) continue;
    made_.insert({a.tensor, access_of(index_, a.tensor, id).version_written});
  }
  return true;
}

std::size_t take_back_impossible(const Program& program, const AccessIndex& index, bool leaves,
                                 StrategyBuilder& builder) {
  Recomputation recomputation(program, index);
  std::size_t taken_back = 0;
  // What leaves can overwrite a copy on the host that a chain had counted on.
  for (bool again = true; again;) {
    again = false;
    for (GapId g = 0; g < static_cast<GapId>(index.gaps().size()); ++g) {
      if (builder.decision(g) != Decision::recompute) continue;
      if (recomputation.chain(g, builder.strategy())) continue;
      leaves ? builder.away(g) : builder.keep(g);
      ++taken_back;
      again = true;
    }
  }
  return taken_back;
}

std::vector<OpId> needed_before(const Program& program, const AccessIndex& index,
                                const Strategy& strategy) {
  Strategy bare = strategy;
  bare.hints.clear();
  Expansion expansion;
  const std::string refused = Expander(program, index).expand(bare, expansion);
  std::vector<OpId> needed(index.gaps().size(), kNone);
  if (!refused.empty()) return needed;
  // Per call: the op it runs for.
  std::vector<OpId> runs_for(expansion.calls.size(), kNone);
  OpId op = kNone;
  for (std::size_t c = expansion.calls.size(); c-- > 0;) {
    if (!expansion.calls[c].clone) op = expansion.calls[c].op;
    runs_for[c] = op;
  }
  for (const MoveId id : expansion.ins) {
    const Move& move = expansion.moves[at(id)];
    if (move.gap == kNone || index.gaps()[at(move.gap)].kind != GapKind::device) continue;
    needed[at(move.gap)] = runs_for[at(move.call)];
  }
  return needed;
}

}  // namespace tidepool
