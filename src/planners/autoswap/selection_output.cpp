#include "planners/autoswap/selection_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"

namespace tidepool {
namespace {

std::vector<std::string> notes(const LoadedSelection& chosen, const SwapCandidates& candidates) {
  const std::vector<SwapPick>& picks = chosen.selection.picks;
  const auto used = std::count_if(picks.begin(), picks.end(),
                                  [](const SwapPick& pick) { return pick.candidate; });
  const auto others = static_cast<std::ptrdiff_t>(picks.size()) - used;
  const std::string limit = chosen.selected_for < kNoDeviceLimit
                                ? fmt::format("at load limit {}", format_bytes(chosen.selected_for))
                                : "without a limit";
  std::vector<std::string> notes{fmt::format("score {} {}: {} of {}", to_string(chosen.weights),
                                             limit, used,
                                             counted(candidates.candidates().size(), "candidate"))};
  if (others > 0) {
    notes.push_back(
        fmt::format("load_min is {}: {} swapped too", format_bytes(candidates.load_min()),
                    others == 1 ? "1 gap beyond the candidates is"
                                : fmt::format("{} gaps beyond the candidates are", others)));
  }
  return notes;
}

std::vector<std::string> reasons(const LoadedSelection& chosen) {
  const Strategy& strategy = chosen.selection.strategy;
  std::vector<std::string> out(strategy.gaps.size(), "kept: the load fits without it");
  for (std::size_t i = 0; i < chosen.selection.picks.size(); ++i) {
    const SwapPick& pick = chosen.selection.picks[i];
    out[static_cast<std::size_t>(pick.gap)] = fmt::format(
        "{}, pick {} by {} (score {:.4g})", pick.candidate ? "candidate" : "beyond the candidates",
        i + 1, to_string(chosen.weights), pick.score);
  }
  return out;
}

}  // namespace

PlannerOutput selection_output(PlacedSelection placed, const SwapCandidates& candidates,
                               Bytes budget) {
  if (!placed.lowered) {
    return {
        candidates.select(SwapScore::swdoa, 0).strategy,
        {fmt::format("no selection fits {}: every candidate is swapped, whose load (load_min) is "
                     "{} at least, or the streaming schedule is used",
                     format_bytes(budget), format_bytes(candidates.load_min()))}};
  }
  placed.lowered->strategy.reasons = reasons(placed.selection);
  return {std::move(*placed.lowered), notes(placed.selection, candidates)};
}

}  // namespace tidepool
