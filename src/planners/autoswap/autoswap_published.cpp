#include "planners/autoswap/autoswap_published.h"

#include <algorithm>

#include "planners/toolkit/selection_output.h"

namespace tidepool {
namespace {

class AutoSwapPublished : public Planner {
 public:
  Result<PlannerOutput> plan(Workload&, Lowering& lowering, const Budget& budget,
                             const PlannerOptions& options) override {
    const Program& program = lowering.program();
    const SwapCandidates candidates(program, lowering.index(), lowering.machine(),
                                    choose_algorithms(program, options.algorithms));
    return selection_output(place(candidates, lowering, budget, options), candidates, budget.device,
                            kName);
  }

 private:
  static constexpr const char* kName = "autoswap-published";

  /// The selection for the largest limit whose addresses fit without further waits; where there is
  /// none, for the largest that fits with some.
  static PlacedSelection place(const SwapCandidates& candidates, Lowering& lowering,
                               const Budget& budget, const PlannerOptions& options) {
    constexpr Bytes kSteps = 100;  // of the budget: the least by which the limit goes down
    PlacedSelection with_waits;
    Bytes limit = budget.device;
    while (limit > 0 && !options.stop.requested()) {
      PlacedSelection next;
      next.selection = search_weights(lowering.evaluator(), candidates, limit, limit,
                                      published_search(options.seed, options.stop));
      if (!next.selection.evaluation.feasible) break;
      next.selection.selection.strategy.planner = kName;
      LowerOptions placing;
      placing.allow_streaming = false;
      placing.load_limit = limit;
      placing.attempts = 1;
      auto lowered = lowering.lower(next.selection.selection.strategy, budget, placing);
      if (lowered) next.lowered = std::move(*lowered);
      const Bytes excess = lowering.free_footprint() - budget.device;
      if (next.lowered && excess <= 0) return next;
      if (next.lowered && !with_waits.lowered) with_waits = std::move(next);
      limit -= std::max(excess, budget.device / kSteps + 1);
    }
    return with_waits;
  }
};

}  // namespace

std::unique_ptr<Planner> make_autoswap_published() { return std::make_unique<AutoSwapPublished>(); }

}  // namespace tidepool
