#include "planners/autoswap/autoswap_published.h"

#include "planners/autoswap/selection_output.h"
#include "planners/registry.h"
#include "planners/toolkit/load_limit.h"

namespace tidepool {
namespace {

class AutoSwapPublished : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "autoswap-published"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    if (!context.options().may.swap) return PlannerOutput{context.everything_kept(), {}};
    const Lowering& lowering = context.lowering();
    const SwapCandidates candidates(lowering.program(), lowering.index(), lowering.machine(),
                                    context.algorithms(lowering.program()));
    return selection_output(fitting(candidates, context), candidates, context.budget().device);
  }

 private:
  /// The selection for the largest limit whose addresses fit without further waits; where there is
  /// none, for the largest that fits with some.
  static PlacedSelection fitting(const SwapCandidates& candidates, PlannerContext& context) {
    constexpr Bytes kSteps = 100;
    const Budget& budget = context.budget();
    const Stop stop = context.stopped_or_late();
    const auto search = published_search(context.options().seed, stop);
    PlacedSelection with_waits;
    LoadLimit limit(budget.device, kSteps);
    while (limit.bytes() > 0 && !stop.requested()) {
      LoadedSelection next = search_weights(context.lowering().evaluator(), candidates,
                                            limit.bytes(), limit.bytes(), search);
      if (!next.evaluation.feasible) break;
      LowerOptions placing;
      placing.load_limit = limit.bytes();
      placing.attempts = 1;
      placing.packing.best_fit_alone = true;
      Trial trial = place(context.lowering(), next.selection.strategy, budget, placing);
      const Bytes excess = trial.excess(budget);
      if (trial.lowered && excess <= 0) return {std::move(next), std::move(trial.lowered)};
      if (trial.lowered && !with_waits.lowered) {
        with_waits = {std::move(next), std::move(trial.lowered)};
      }
      limit.tighten(excess);
    }
    return with_waits;
  }
};

}  // namespace

std::unique_ptr<Planner> make_autoswap_published() { return std::make_unique<AutoSwapPublished>(); }

PlannerInfo autoswap_published_planner() {
  return {.name = "autoswap-published",
          .description =
              "the same as in the paper: picks for the limit and copies all of them, in backwards",
          .make = make_autoswap_published};
}

}  // namespace tidepool
