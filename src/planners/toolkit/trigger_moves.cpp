#include "planners/toolkit/trigger_moves.h"

#include <algorithm>

#include "base/at.h"

namespace tidepool {
namespace {

/// Small numbers as often as large ones are by the power of two: 1 to `most`.
std::int32_t distance(std::int32_t most, Random& random) {
  std::uint64_t reach = 1;
  while (random.below(2) == 0 && reach < static_cast<std::uint64_t>(most)) reach *= 2;
  return std::min(most, static_cast<std::int32_t>(1 + random.below(reach)));
}

bool is_copied(Decision decision) {
  return decision == Decision::swap || decision == Decision::drop;
}

}  // namespace

Triggers triggers_of(const Strategy& strategy) {
  Triggers triggers;
  for (const CopyHint& hint : strategy.hints) {
    if (!hint.out_trigger && !hint.in_trigger) continue;
    CopyHint& kept = triggers.emplace_back();
    kept.gap = hint.gap;
    kept.out_trigger = hint.out_trigger;
    kept.in_trigger = hint.in_trigger;
    kept.in_early = hint.in_early;
  }
  std::sort(triggers.begin(), triggers.end(),
            [](const CopyHint& a, const CopyHint& b) { return a.gap < b.gap; });
  return triggers;
}

Triggers in_effect(const Triggers& triggers, std::span<const Decision> decisions) {
  Triggers result;
  for (const CopyHint& trigger : triggers) {
    const Decision decision = decisions[at(trigger.gap)];
    if (!is_copied(decision)) continue;
    CopyHint hint = trigger;
    if (decision == Decision::drop) hint.out_trigger.reset();
    if (hint.in_trigger || hint.out_trigger) result.push_back(hint);
  }
  return result;
}

Triggers::iterator TriggerMoves::find(GapId gap) {
  return std::lower_bound(triggers_.begin(), triggers_.end(), gap,
                          [](const CopyHint& hint, GapId id) { return hint.gap < id; });
}

void TriggerMoves::take_away(GapId gap) {
  before_ = triggers_;
  triggers_.erase(find(gap));
}

std::int32_t TriggerMoves::position(const Gap& gap, OpId op) const {
  const auto ops = static_cast<std::int32_t>(program_.ops.size());
  return gap.wraps && op <= gap.from ? op.value() + ops : op.value();
}

std::int32_t TriggerMoves::end(const Gap& gap) const {
  return gap.to.value() + (gap.wraps ? static_cast<std::int32_t>(program_.ops.size()) : 0);
}

/// A gap of the device ends with a device op.
OpId TriggerMoves::device_op_from(std::int32_t position) const {
  const auto ops = static_cast<std::int32_t>(program_.ops.size());
  while (program_.ops[at(position % ops)].place != OpPlace::device) ++position;
  return OpId{position % ops};
}

std::int32_t TriggerMoves::moved(std::int32_t position, Random& random) const {
  const auto ops = static_cast<std::int32_t>(program_.ops.size());
  const std::int32_t by = distance(ops, random);
  return random.below(2) == 0 ? position - by : position + by;
}

void TriggerMoves::change(GapId g, Decision decision, Random& random) {
  before_ = triggers_;
  const Gap& gap = index_.gaps()[at(g)];
  auto found = find(g);
  if (found == triggers_.end() || found->gap != g) {
    CopyHint hint;
    hint.gap = g;
    found = triggers_.insert(found, hint);
  } else if (random.below(4) == 0) {
    triggers_.erase(found);
    return;
  }
  const auto ops = static_cast<std::int32_t>(program_.ops.size());
  const std::int32_t first = gap.from.value() + 1;
  const std::int32_t last = end(gap);
  // The copy out is issued in the iteration in which the gap begins, so one
  // that begins with the last op has no choice of its time.
  const std::int32_t latest = std::min(last, ops - 1);
  if (decision == Decision::swap && first <= latest && random.below(2) == 0) {
    const std::int32_t out = found->out_trigger ? position(gap, *found->out_trigger) : first;
    found->out_trigger = device_op_from(std::clamp(moved(out, random), first, latest));
    if (position(gap, *found->out_trigger) >= ops) found->out_trigger.reset();
  } else {
    const std::int32_t in = found->in_trigger ? position(gap, *found->in_trigger) : last;
    if (found->in_trigger && random.below(4) == 0) {
      found->in_early = !found->in_early;
    } else {
      found->in_trigger = device_op_from(std::clamp(moved(in, random), first, last));
    }
  }
  const bool behind = found->out_trigger && found->in_trigger &&
                      position(gap, *found->in_trigger) < position(gap, *found->out_trigger);
  if (behind) found->in_trigger = found->out_trigger;
  if (!found->out_trigger && !found->in_trigger) triggers_.erase(found);
}

}  // namespace tidepool
