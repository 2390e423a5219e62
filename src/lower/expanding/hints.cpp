#include "lower/expanding/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "base/at.h"

namespace tidepool {

const CopyHint* Hints::of(GapId gap) const {
  if (hint_of_gap_.empty() || gap == kNone || hint_of_gap_[at(gap)] == kNone) return nullptr;
  return &strategy_->hints[at(hint_of_gap_[at(gap)])];
}

std::string Hints::read(const Strategy& strategy) {
  strategy_ = &strategy;
  forget();
  if (strategy.hints.empty()) return {};
  hint_of_gap_.assign(index_.gaps().size(), kNone);
  for (std::size_t i = 0; i < strategy.hints.size(); ++i) {
    const CopyHint& hint = strategy.hints[i];
    if (std::string why = wrong_with(hint); !why.empty()) return why;
    hint_of_gap_[at(hint.gap)] = static_cast<std::int32_t>(i);
    if (hint.out_trigger) due_.push_back({*hint.out_trigger, hint.gap, false});
    if (hint.in_barrier) due_.push_back({*hint.in_barrier, hint.gap, true});
  }
  std::sort(due_.begin(), due_.end(), [](const Due& a, const Due& b) {
    return std::tie(a.before, a.in, a.gap) < std::tie(b.before, b.in, b.gap);
  });
  return {};
}

std::string Hints::wrong_with(const CopyHint& hint) const {
  if (hint.gap < 0 || at(hint.gap) >= index_.gaps().size()) {
    return fmt::format("a hint names gap {} of {}", hint.gap, index_.gaps().size());
  }
  const Gap& gap = index_.gaps()[at(hint.gap)];
  const auto bad = [&](std::string_view what) {
    return fmt::format("hint for tensor '{}' after op '{}': {}",
                       program_.tensors[at(gap.tensor)].name, program_.ops[at(gap.from)].name,
                       what);
  };
  if (hint_of_gap_[at(hint.gap)] != kNone) return bad("the gap has two hints");
  const Decision chosen = strategy_->gaps[at(hint.gap)];
  if (gap.kind != GapKind::device || (chosen != Decision::swap && chosen != Decision::drop)) {
    return bad("the gap is neither swapped nor dropped");
  }
  if (chosen == Decision::drop && (hint.out_trigger || hint.out_barrier)) {
    return bad("a dropped gap has no copy out");
  }
  if (hint.device_offset && *hint.device_offset < 0) return bad("the offset is negative");
  if (hint.in_early && !hint.in_trigger) return bad("a copy in without a trigger starts early");
  // Positions in the iteration in which the gap begins; those of the next one lie behind.
  const auto ops = static_cast<std::int32_t>(program_.ops.size());
  const std::int32_t end = gap.to + (gap.wraps ? ops : 0);
  const auto position = [&](OpId op) {
    return gap.wraps && op <= gap.from ? op + ops : op.value();
  };
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
  return {};
}

/// Ops become calls, now that all calls are known.
void Hints::resolve(std::vector<Move>& moves, std::span<const CallId> op_call) const {
  if (hint_of_gap_.empty()) return;
  for (Move& move : moves) {
    const CopyHint* hint = of(move.gap);
    if (hint == nullptr) continue;
    const Gap& gap = index_.gaps()[at(move.gap)];
    if (!move.out && hint->in_trigger) {
      move.trigger = op_call[at(*hint->in_trigger)];
      move.trigger_previous = gap.wraps && *hint->in_trigger > gap.from;
      move.early = hint->in_early;
      // What the op waiting for it needs first (recomputations) comes before the op itself.
      if (!move.trigger_previous) move.trigger = std::min(move.trigger, move.call);
    }
    if (move.out && hint->out_barrier) {
      move.barrier = op_call[at(*hint->out_barrier)];
      move.barrier_next = gap.wraps && *hint->out_barrier <= gap.from;
    }
  }
}

}  // namespace tidepool
