#include "schedule/strategy.h"

#include "base/at.h"

namespace tidepool {
namespace {

bool is_away(Decision decision) { return decision == Decision::swap || decision == Decision::drop; }

}  // namespace

const char* to_string(Decision decision) {
  switch (decision) {
    case Decision::keep:
      return "keep";
    case Decision::swap:
      return "swap";
    case Decision::drop:
      return "drop";
    case Decision::recompute:
      return "recompute";
  }
  return "?";
}

Strategy keep_everything(const Program& program, const AccessIndex& index,
                         std::vector<std::int32_t> algorithms) {
  Strategy strategy;
  strategy.planner = "none";
  strategy.sub_batch = program.sub_batch;
  strategy.gaps.assign(index.gaps().size(), Decision::keep);
  strategy.algorithms = std::move(algorithms);
  return strategy;
}

void derive_drops(const AccessIndex& index, TensorId tensor, std::span<Decision> decisions) {
  const auto gaps = index.gaps(tensor);
  const auto first = at(index.first_gap(tensor));
  if (gaps.empty()) return;
  const std::size_t last = gaps.size() - 1;
  std::int32_t on_host = gaps[last].wraps && is_away(decisions[first + last]) ? 0 : kNone;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    Decision& decision = decisions[first + i];
    if (gaps[i].kind == GapKind::kept) continue;
    if (gaps[i].kind != GapKind::device) {
      on_host = gaps[i].version;  // a host op made it or gets it
      continue;
    }
    if (!is_away(decision)) continue;
    // What goes over the iteration's end has one place on the host, the one it started from.
    const bool valid = gaps[i].version == on_host && (!gaps[i].wraps || on_host == 0);
    decision = valid || gaps[i].dead ? Decision::drop : Decision::swap;
    if (!gaps[i].dead) on_host = gaps[i].version;
  }
}

}  // namespace tidepool
