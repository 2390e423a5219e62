#include "planners/published/capuchin/capuchin_policy.h"

#include <algorithm>

#include "ir/load_profile.h"
#include "planners/toolkit/unstalled_starts.h"

namespace tidepool {

Nanos CopyLane::latest_start(Nanos due, Nanos duration) const {
  Nanos start = due - duration;
  for (auto other = busy_.lower_bound(due); other != busy_.begin();) {
    --other;
    if (other->second <= start) break;
    start = std::min(start, other->first - duration);
  }
  return start;
}

Nanos CopyLane::earliest_start(Nanos ready, Nanos duration) const {
  Nanos start = ready;
  auto other = busy_.upper_bound(ready);
  if (other != busy_.begin() && std::prev(other)->second > ready) --other;
  for (; other != busy_.end() && other->first < start + duration; ++other) start = other->second;
  return start;
}

void CopyLane::reserve(Nanos start, Nanos duration) {
  if (duration <= Nanos{0}) return;
  Nanos end = start + duration;
  auto other = busy_.upper_bound(end);
  while (other != busy_.begin() && std::prev(other)->second >= start) {
    --other;
    start = std::min(start, other->first);
    end = std::max(end, other->second);
    other = busy_.erase(other);
  }
  busy_.emplace(start, end);
}

CapuchinPolicy::CapuchinPolicy(const Lowering& lowering, const MayDecide& may,
                               std::vector<std::int32_t> algorithms)
    : lowering_(lowering),
      program_(lowering.program()),
      index_(lowering.index()),
      may_(may),
      algorithms_(std::move(algorithms)),
      starts_(unstalled_starts(program_, algorithms_)),
      load_(load_profile(program_, index_, lowering.machine().alignment(), algorithms_).at_op),
      recomputation_(program_, index_),
      from_host_(index_.gaps().size(), 0),
      curve_(load_) {
  for (TensorId t = 0; t < static_cast<TensorId>(program_.tensors.size()); ++t) {
    bool by_host = false;
    const auto accesses = index_.accesses(t);
    for (std::size_t i = 0; i < index_.gaps(t).size(); ++i) {
      if (accesses[i].version_written != kNone) {
        by_host = program_.ops[at(accesses[i].op)].place == OpPlace::host;
      }
      from_host_[at(index_.first_gap(t)) + i] = by_host ? 1 : 0;
    }
  }
}

Bytes CapuchinPolicy::bytes(GapId id) const {
  return align_up(program_.tensors[at(gap(id).tensor)].bytes, lowering_.machine().alignment());
}

Nanos CapuchinPolicy::in_time(GapId id) const {
  return lowering_.machine().from_away().time(program_.tensors[at(gap(id).tensor)].bytes);
}

Nanos CapuchinPolicy::out_time(GapId id) const {
  if (from_host_[at(id)] != 0) return Nanos{0};
  return lowering_.machine().to_away().time(program_.tensors[at(gap(id).tensor)].bytes);
}

Nanos CapuchinPolicy::free_time(GapId id) const {
  return idle_time(gap(id), starts_) - out_time(id) - in_time(id);
}

Nanos CapuchinPolicy::out_start(GapId id) const {
  return outs_.earliest_start(starts_[at(gap(id).from) + 1], out_time(id));
}

Nanos CapuchinPolicy::in_start(GapId id) const {
  const CopyLane& lane = lowering_.machine().duplex() ? ins_ : outs_;
  return lane.latest_start(starts_[at(gap(id).to)], in_time(id));
}

/// How late the tensor is back when its copies share the link with those chosen so far.
Nanos CapuchinPolicy::exposed_time(GapId id) const {
  const Nanos ready = starts_[at(gap(id).from) + 1];
  const Nanos out_end = out_time(id) > Nanos{0} ? out_start(id) + out_time(id) : ready;
  return std::max(out_end - in_start(id), Nanos{0});
}

/// Exposed copies take the link as well.
void CapuchinPolicy::reserve(GapId id) {
  const Nanos out = out_start(id);
  const Nanos in = in_start(id);
  outs_.reserve(out, out_time(id));
  (lowering_.machine().duplex() ? ins_ : outs_).reserve(in, in_time(id));
}

void CapuchinPolicy::begin() {
  const auto gaps = static_cast<GapId>(index_.gaps().size());
  candidates_.clear();
  hidden_ = all_ = StabbingTree(program_.ops.size());
  curve_ = PeakCurve(load_);
  outs_ = ins_ = {};
  builder_.emplace(program_, index_, algorithms_);
  swaps_.clear();
  recomputed_.clear();
  for (GapId g = 0; g < gaps; ++g) {
    if (gap(g).kind != GapKind::device || gap(g).wraps || gap(g).dead) continue;
    const OpId first = gap(g).from + 1;
    if (first >= gap(g).to) continue;  // nothing runs in between
    const auto number = static_cast<std::int32_t>(candidates_.size());
    candidates_.push_back({.gap = g, .sources = {}});
    const auto free = static_cast<double>(free_time(g).count());
    if (free >= 0) hidden_.add(number, first, gap(g).to, free);
    all_.add(number, first, gap(g).to, 0);
  }
}

bool CapuchinPolicy::choose(Bytes limit, const Stop& stop) {
  begin();
  while (curve_.peak() > limit) {
    if (stop.requested()) return false;
    const OpId op = curve_.peak_op();
    if (may_.swap && take_hidden_swap(op)) continue;
    if (!take_least_exposed(op)) return false;
  }
  return true;
}

bool CapuchinPolicy::take_hidden_swap(OpId op) {
  const auto free = [&](std::int32_t n) {
    return static_cast<double>(free_time(candidates_[at(n)].gap).count());
  };
  while (true) {
    const std::int32_t best = hidden_.highest_over(op, free);
    if (best == kNone) return false;
    hidden_.remove(best);
    if (exposed_time(candidates_[at(best)].gap) > Nanos{0}) continue;  // the link is busy
    take(best, Choice::swap);
    return true;
  }
}

/// The most bytes for each second that is lost, with the cheaper of both ways.
bool CapuchinPolicy::take_least_exposed(OpId op) {
  std::int32_t best = kNone;
  Choice way = Choice::swap;
  double best_rate = 0;
  all_.for_each_over(op, [&](std::int32_t n) {
    Candidate& candidate = candidates_[at(n)];
    const auto consider = [&](Nanos lost, Choice choice) {
      const double rate = static_cast<double>(bytes(candidate.gap)) /
                          static_cast<double>(std::max(lost, Nanos{1}).count());
      const bool first_of_equals = rate == best_rate && (n < best || best == kNone);
      if (rate < best_rate || (rate == best_rate && !first_of_equals)) return;
      best_rate = rate;
      best = n;
      way = choice;
    };
    if (may_.recompute) find_recomputation(candidate);
    const bool recomputable = may_.recompute && candidate.possible;
    const Nanos exposed = may_.swap ? exposed_time(candidate.gap) : Nanos::max();
    if (recomputable && candidate.recompute_time < exposed) {
      consider(candidate.recompute_time, Choice::recompute);
    } else if (may_.swap) {
      consider(exposed, Choice::swap);
    }
  });
  if (best == kNone) return false;
  hidden_.remove(best);
  take(best, way);
  return true;
}

void CapuchinPolicy::find_recomputation(Candidate& candidate) {
  if (candidate.known) return;
  candidate.known = true;
  const auto chain = recomputation_.chain(candidate.gap, builder_->strategy());
  candidate.possible = chain.has_value();
  if (!chain) return;
  candidate.recompute_time = recomputation_.time(*chain, builder_->strategy());
  candidate.sources.assign(recomputation_.sources().begin(), recomputation_.sources().end());
}

void CapuchinPolicy::take(std::int32_t number, Choice choice) {
  const GapId id = candidates_[at(number)].gap;
  all_.remove(number);
  curve_.lower(gap(id).from + 1, gap(id).to, bytes(id));
  if (choice == Choice::swap) {
    builder_->away(id);
    swaps_.push_back(id);
    reserve(id);
    return;
  }
  builder_->recompute(id);
  recomputed_.push_back(id);
  for (Candidate& other : candidates_) {
    const bool uses = std::find(other.sources.begin(), other.sources.end(), gap(id).tensor) !=
                      other.sources.end();
    if (uses) other.known = false;
  }
}

Strategy CapuchinPolicy::strategy(Bytes limit, std::span<const Nanos> earlier) {
  StrategyBuilder builder(program_, index_, algorithms_);
  for (const GapId id : swaps_) builder.away(id);
  for (const GapId id : recomputed_) builder.recompute(id);
  take_back_impossible(program_, index_, may_.swap, builder);
  need_ = needed_before(program_, index_, builder.strategy());
  std::vector<GapId> copied_in;
  for (GapId g = 0; g < static_cast<GapId>(need_.size()); ++g) {
    if (need_[at(g)] != kNone && !gap(g).wraps) copied_in.push_back(g);
  }
  std::stable_sort(copied_in.begin(), copied_in.end(),
                   [&](GapId a, GapId b) { return need_[at(a)] < need_[at(b)]; });
  CopyLane lane;
  std::vector<Nanos> start(copied_in.size());
  for (std::size_t i = copied_in.size(); i-- > 0;) {
    const GapId g = copied_in[i];
    start[i] = lane.latest_start(starts_[at(need_[at(g)])], in_time(g));
    if (!earlier.empty()) start[i] -= earlier[at(g)];
    lane.reserve(start[i], in_time(g));
  }
  std::vector<Bytes> load = curve_.load();
  for (std::size_t i = 0; i < copied_in.size(); ++i) {
    CopyHint hint;
    hint.gap = copied_in[i];
    hint.in_trigger = trigger(copied_in[i], need_[at(copied_in[i])], start[i], limit, load);
    builder.hint(hint);
  }
  return builder.strategy();
}

/// The last op that starts no later, but behind all over which the tensor has no room.
OpId CapuchinPolicy::trigger(GapId id, OpId need, Nanos start, Bytes limit,
                             std::vector<Bytes>& load) const {
  OpId from = need;
  for (OpId p = need - 1; p > gap(id).from; --p) {
    if (load[at(p)] + bytes(id) > limit) break;
    if (program_.ops[at(p)].place != OpPlace::device) continue;
    from = p;
    if (starts_[at(p)] <= start) break;
  }
  for (OpId p = from; p < need; ++p) load[at(p)] += bytes(id);
  return from;
}

std::vector<GapId> CapuchinPolicy::late(std::span<const Nanos> waits) const {
  std::vector<GapId> gaps;
  for (GapId g = 0; g < static_cast<GapId>(need_.size()); ++g) {
    if (need_[at(g)] == kNone || gap(g).wraps) continue;
    if (waits[at(need_[at(g)])] > Nanos{0}) gaps.push_back(g);
  }
  return gaps;
}

}  // namespace tidepool
