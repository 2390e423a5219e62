#include "planners/autoswap.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "planners/autoswap_load.h"

namespace tidepool {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

bool stopped(const PlannerOptions& options) { return options.cancelled && options.cancelled(); }

class AutoSwap : public Planner {
 public:
  explicit AutoSwap(const AutoSwapOptions& settings) : settings_(settings) {}

  Result<PlannerOutput> plan(Workload&, Lowering& lowering, const Budget& budget,
                             const PlannerOptions& options) override {
    const Program& program = lowering.program();
    const SwapCandidates candidates(program, lowering.index(), lowering.machine(),
                                    choose_algorithms(program, options.algorithms),
                                    settings_.smallest);
    std::vector<LoadedSelection> found = by_single_scores(candidates, lowering, budget, options);
    sort_by_time_then_traffic(found, program, lowering.index());
    Choice choice;
    for (const LoadedSelection& next : found) {
      if (stopped(options)) break;
      if (place(next, budget.device, lowering, budget, choice)) break;
    }
    combine(found, candidates, lowering, budget, options, choice);

    PlannerOutput output;
    if (!choice.lowered) {
      output.notes.push_back(fmt::format(
          "no selection fits {}: the streaming schedule is used; the smallest load with every "
          "candidate swapped (load_min) is {}",
          format_bytes(budget.device), format_bytes(candidates.load_min())));
      output.strategy = candidates.select(SwapScore::swdoa, 0).strategy;
      output.strategy.planner = kName;
      return output;
    }
    output.lowered = std::move(choice.lowered);
    output.lowered->strategy.reasons = reasons(choice.selection);
    output.strategy = output.lowered->strategy;
    output.notes = notes(choice.selection, candidates);
    return output;
  }

 private:
  static constexpr const char* kName = "autoswap";

  /// The fastest plan so far.
  struct Choice {
    LoadedSelection selection;
    std::optional<Lowered> lowered;
  };

  /// Lowers a selection and keeps it where it is faster. True when addresses cost nothing.
  static bool place(const LoadedSelection& next, Bytes load_limit, Lowering& lowering,
                    const Budget& budget, Choice& choice) {
    LowerOptions placing;
    placing.allow_streaming = false;
    placing.load_limit = load_limit;
    if (choice.lowered) placing.faster_than = choice.lowered->iteration_time;
    auto lowered = lowering.lower(next.selection.strategy, budget, placing);
    if (!lowered) return false;
    choice = {next, std::move(*lowered)};
    return choice.lowered->iteration_time == next.evaluation.iteration_time;
  }

  /// Every score at the budget and at tighter limits (the footprint is larger than the load, and
  /// copies take time to leave), timed under the budget. Selections that several scores share
  /// appear once.
  static std::vector<LoadedSelection> by_single_scores(const SwapCandidates& candidates,
                                                       Lowering& lowering, const Budget& budget,
                                                       const PlannerOptions& options) {
    constexpr std::array<double, 12> kTighter{1.0,  0.99, 0.98, 0.96, 0.94, 0.91,
                                              0.88, 0.84, 0.8,  0.7,  0.5,  0.0};
    std::vector<LoadedSelection> found;
    std::set<std::vector<Decision>> seen;
    for (const SwapScore score : kSwapScores) {
      SwapOrder order(candidates, only(score));
      for (const double factor : kTighter) {
        if (stopped(options)) return found;
        LoadedSelection next;
        next.weights = only(score);
        next.selected_for = static_cast<Bytes>(static_cast<double>(budget.device) * factor);
        next.selection = order.select(next.selected_for);
        if (!seen.insert(next.selection.strategy.gaps).second) continue;
        next.selection.strategy.planner = kName;
        next.evaluation =
            lowering.evaluator().evaluate(next.selection.strategy, {budget.device, true});
        if (next.evaluation.feasible) found.push_back(std::move(next));
      }
    }
    return found;
  }

  /// BO, where the single scores leave overhead: under the budget, and under the tighter load limit
  /// at which the best plan so far could be packed.
  void combine(const std::vector<LoadedSelection>& found, const SwapCandidates& candidates,
               Lowering& lowering, const Budget& budget, const PlannerOptions& options,
               Choice& choice) const {
    // Where even all gaps leave more than the limit, there is nothing to choose.
    const auto meets_limit = [](const LoadedSelection& s) {
      return s.selection.peak <= s.selected_for;
    };
    const auto met = std::find_if(found.begin(), found.end(), meets_limit);
    if (met == found.end() || settings_.weight_evaluations == 0) return;
    const WeightSearchOptions search{settings_.weight_evaluations, options.seed, options.cancelled};
    const auto try_under = [&](Bytes load_limit, Bytes selected_for) {
      if (stopped(options) || !has_overhead(choice)) return;
      LoadedSelection combined =
          search_weights(lowering.evaluator(), candidates, load_limit, selected_for, search);
      if (!combined.evaluation.feasible) return;
      combined.selection.strategy.planner = kName;
      place(combined, load_limit, lowering, budget, choice);
    };
    try_under(budget.device, met->selected_for);
    if (!choice.lowered) return;
    const Bytes packed = choice.lowered->load_limit;
    const LoadedSelection& chosen = meets_limit(choice.selection) ? choice.selection : *met;
    try_under(packed, std::min(packed, chosen.selected_for));
  }

  static bool has_overhead(const Choice& choice) {
    if (!choice.lowered) return true;
    const Nanos stall = choice.lowered->iteration_time - choice.lowered->compute_time;
    return to_seconds(stall) > kNoOverhead * to_seconds(choice.lowered->compute_time);
  }

  /// Fastest first; among times within a thousandth of the fastest, the one that moves least.
  static void sort_by_time_then_traffic(std::vector<LoadedSelection>& found, const Program& program,
                                        const AccessIndex& index) {
    Nanos fastest = Nanos::max();
    for (const LoadedSelection& s : found) {
      fastest = std::min(fastest, s.evaluation.iteration_time);
    }
    struct Key {
      bool as_fast = false;
      Nanos time{};
      Bytes moved = 0;
    };
    const auto key = [&](const LoadedSelection& s) {
      Key k{s.evaluation.iteration_time <= fastest + fastest / 1000, s.evaluation.iteration_time};
      for (const SwapPick& pick : s.selection.picks) {
        k.moved += program.tensors[at(index.gaps()[at(pick.gap)].tensor)].bytes;
      }
      return k;
    };
    std::stable_sort(found.begin(), found.end(),
                     [&](const LoadedSelection& a, const LoadedSelection& b) {
                       const Key x = key(a);
                       const Key y = key(b);
                       if (x.as_fast != y.as_fast) return x.as_fast;
                       return x.as_fast ? x.moved < y.moved : x.time < y.time;
                     });
  }

  static std::vector<std::string> notes(const LoadedSelection& chosen,
                                        const SwapCandidates& candidates) {
    const std::vector<SwapPick>& picks = chosen.selection.picks;
    const auto used = std::count_if(picks.begin(), picks.end(),
                                    [](const SwapPick& pick) { return pick.candidate; });
    const auto others = static_cast<std::ptrdiff_t>(picks.size()) - used;
    std::vector<std::string> notes{
        fmt::format("score {} at load limit {}: {} of {} candidates", to_string(chosen.weights),
                    format_bytes(chosen.selected_for), used, candidates.candidates().size())};
    if (others > 0) {
      notes.push_back(fmt::format("load_min is {}: {} gaps beyond the candidates are swapped too",
                                  format_bytes(candidates.load_min()), others));
    }
    return notes;
  }

  static std::vector<std::string> reasons(const LoadedSelection& chosen) {
    const Strategy& strategy = chosen.selection.strategy;
    std::vector<std::string> out(strategy.gaps.size(), "kept: the load fits without it");
    for (std::size_t i = 0; i < chosen.selection.picks.size(); ++i) {
      const SwapPick& pick = chosen.selection.picks[i];
      out[at(pick.gap)] = fmt::format("{}, pick {} by {} (score {:.4g})",
                                      pick.candidate ? "candidate" : "beyond the candidates", i + 1,
                                      to_string(chosen.weights), pick.score);
    }
    return out;
  }

  AutoSwapOptions settings_;
};

}  // namespace

std::unique_ptr<Planner> make_autoswap() { return make_autoswap(AutoSwapOptions{}); }

std::unique_ptr<Planner> make_autoswap(const AutoSwapOptions& options) {
  return std::make_unique<AutoSwap>(options);
}

}  // namespace tidepool
