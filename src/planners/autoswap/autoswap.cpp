#include "planners/autoswap/autoswap.h"

#include <algorithm>

#include "base/at.h"
#include "planners/autoswap/selection_output.h"
#include "planners/registry.h"

namespace tidepool {
namespace {

class AutoSwap : public Planner {
 public:
  explicit AutoSwap(const AutoSwapOptions& settings) : settings_(settings) {}

  [[nodiscard]] std::string_view name() const override { return "autoswap"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    if (!context.options().may.swap) return PlannerOutput{context.everything_kept(), {}};
    Lowering& lowering = context.lowering();
    const Program& program = lowering.program();
    const Bytes budget = context.budget().device;
    const SwapCandidates candidates(
        program, lowering.index(), lowering.machine(),
        settings_.algorithms.empty() ? context.algorithms(program) : settings_.algorithms,
        settings_.smallest);
    const Stop stop = context.stopped_or_late();
    // Addresses want time too.
    const Allowance half = context.allowance().part(1.0 / 2);
    const Stop enough = [&context, &half] { return context.stopped() || half.used_up(); };
    // The footprint is larger than the load, and copies take time to leave: for tighter limits too.
    std::vector<LoadedSelection> found =
        select_for_tighter(lowering.evaluator(), candidates, budget, enough);
    sort_by_time_then_traffic(found, program, lowering.index());
    PlacedSelection choice;  // the fastest plan so far
    bool tried = false;
    for (const LoadedSelection& next : found) {
      // What has been found is worth one try, however late it is.
      if (context.stopped() || (tried && stop.requested())) break;
      tried = true;
      if (try_placing(next, budget, context, choice)) break;
    }
    combine(found, candidates, context, choice);
    if (!choice.lowered && context.gives_up()) {
      return fail(ErrorCode::interrupted, "interrupted while planning");
    }
    return selection_output(std::move(choice), candidates, budget);
  }

 private:
  /// Lowers a selection and keeps it where it is faster, unless there is less time than the best
  /// took. True when addresses cost nothing.
  static bool try_placing(LoadedSelection next, Bytes load_limit, PlannerContext& context,
                          PlacedSelection& choice) {
    const Allowance left = context.allowance();
    if (choice.lowered && !left.repeats() && left.time_left() < choice.lowered->lowering_time()) {
      return false;
    }
    LowerOptions placing;
    placing.load_limit = load_limit;
    placing.stop = context.stopped_or_late();
    if (choice.lowered) placing.faster_than = choice.lowered->iteration_time;
    Trial trial =
        place(context.lowering(), next.selection.strategy, context.budget(), std::move(placing));
    if (!trial.lowered) return false;
    const bool lost_nothing = trial.lowered->iteration_time == next.evaluation.iteration_time;
    choice = {std::move(next), std::move(trial.lowered)};
    return lost_nothing;
  }

  /// BO, where the single scores leave overhead: under the budget, and under the tighter load limit
  /// at which the best plan so far could be packed.
  void combine(const std::vector<LoadedSelection>& found, const SwapCandidates& candidates,
               PlannerContext& context, PlacedSelection& choice) const {
    // Where even all gaps leave more than the limit, there is nothing to choose.
    const auto meets_limit = [](const LoadedSelection& s) {
      return s.selection.peak <= s.selected_for;
    };
    const auto met = std::find_if(found.begin(), found.end(), meets_limit);
    if (met == found.end() || settings_.weight_evaluations == 0) return;
    const Stop stop = context.stopped_or_late();
    const WeightSearchOptions search{settings_.weight_evaluations, context.options().seed, stop};
    const auto try_under = [&](Bytes load_limit, Bytes selected_for) {
      if (stop.requested() || !has_overhead(choice)) return;
      LoadedSelection combined = search_weights(context.lowering().evaluator(), candidates,
                                                load_limit, selected_for, search);
      if (!combined.evaluation.feasible) return;
      try_placing(std::move(combined), load_limit, context, choice);
    };
    try_under(context.budget().device, met->selected_for);
    if (!choice.lowered) return;
    const Bytes packed = choice.lowered->load_limit;
    const LoadedSelection& chosen = meets_limit(choice.selection) ? choice.selection : *met;
    try_under(packed, std::min(packed, chosen.selected_for));
  }

  static bool has_overhead(const PlacedSelection& choice) {
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

  AutoSwapOptions settings_;
};

}  // namespace

std::unique_ptr<Planner> make_autoswap() { return make_autoswap(AutoSwapOptions{}); }

std::unique_ptr<Planner> make_autoswap(const AutoSwapOptions& options) {
  return std::make_unique<AutoSwap>(options);
}

PlannerInfo autoswap_planner() {
  return {
      .name = "autoswap",
      .description = "swaps by score: DOA, AOA, WDOA, SWDOA or their best mix (SmartPool/AutoSwap)",
      .make = make_autoswap,
      .begins_searches = true};
}

}  // namespace tidepool
