#include "schedule/outcomes.h"

#include <algorithm>

#include "base/at.h"

namespace tidepool {
namespace {

bool writes_over(const Program& program, TensorId tensor, OpId op) {
  const auto& accesses = program.ops[at(op)].accesses;
  const auto found = std::ranges::find(accesses, tensor, &Access::tensor);
  return found != accesses.end() && found->mode == AccessMode::write;
}

/// `on_host`: the host has the version that lives through the gap.
Outcome outcome_of(Decision decision, bool overwritten, bool on_host) {
  if (decision == Decision::keep) return Outcome::keep;
  if (overwritten) return Outcome::release;
  if (decision == Decision::swap) return Outcome::swap;
  return decision == Decision::drop || on_host ? Outcome::drop : Outcome::recompute;
}

}  // namespace

const char* to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::keep:
      return "keep";
    case Outcome::swap:
      return "swap";
    case Outcome::drop:
      return "drop";
    case Outcome::recompute:
      return "recompute";
    case Outcome::release:
      return "release";
  }
  return "?";
}

std::vector<Outcome> outcomes(const Program& program, const AccessIndex& index,
                              std::span<const Decision> decisions) {
  std::vector<Outcome> all(decisions.size(), Outcome::keep);
  for (TensorId t = 0; t < std::ssize(program.tensors); ++t) {
    const auto gaps = index.gaps(t);
    if (gaps.empty()) continue;
    const auto first = at(index.first_gap(t));
    const auto away = [&](std::size_t i) {
      return decisions[first + i] == Decision::swap || decisions[first + i] == Decision::drop;
    };
    const std::size_t last = gaps.size() - 1;
    // What left over the iteration's end is where the iteration starts.
    std::int32_t on_host = gaps[last].wraps && away(last) ? 0 : kNone;
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      const Gap& gap = gaps[i];
      if (gap.kind != GapKind::device) {
        if (gap.kind != GapKind::kept) on_host = gap.version;
        continue;
      }
      const Decision decision = decisions[first + i];
      all[first + i] =
          outcome_of(decision, writes_over(program, t, gap.to), gap.version == on_host);
      if (decision == Decision::swap) on_host = gap.version;
    }
  }
  return all;
}

}  // namespace tidepool
