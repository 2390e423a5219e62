#include "planners/none.h"

#include <fmt/format.h>

#include <limits>

namespace tidepool {
namespace {

class None : public Planner {
 public:
  Result<PlannerOutput> plan(Workload&, Lowering& lowering, const Budget& budget,
                             const PlannerOptions& options) override {
    PlannerOutput output;
    output.strategy = keep_everything(lowering.program(), lowering.index(),
                                      choose_algorithms(lowering.program(), options.algorithms));
    LowerOptions keep;
    keep.allow_streaming = false;
    auto lowered = lowering.lower(output.strategy, budget, keep);
    if (!lowered) {
      // Without swapping, what it needs is what it takes without a budget.
      const Budget unlimited{std::numeric_limits<Bytes>::max() / 4, 0};
      auto needed = lowering.lower(output.strategy, unlimited, keep);
      if (!needed) return fail(needed.error());
      const Bytes bytes = needed->plan.device_bytes;
      return fail(Error{ErrorCode::infeasible,
                        fmt::format("budget {} B ({}) cannot be met without swapping: planner 'none' "
                                    "keeps every tensor and needs {} B ({}); try --planner autoswap",
                                    budget.device, format_bytes(budget.device), bytes,
                                    format_bytes(bytes)),
                        bytes});
    }
    output.lowered = std::move(*lowered);
    return output;
  }
};

}  // namespace

std::unique_ptr<Planner> make_none() { return std::make_unique<None>(); }

}  // namespace tidepool
