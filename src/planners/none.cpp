#include "planners/none.h"

#include <fmt/format.h>

#include <limits>

#include "base/quantity.h"

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
      const Bytes bytes = needed_bytes(lowering, output.strategy, keep);
      return fail(Error{
          ErrorCode::infeasible,
          fmt::format("budget {} B ({}) cannot be met without swapping: planner 'none' "
                      "keeps every tensor and needs {} B ({}); try `planner` autoswap",
                      budget.device, format_bytes(budget.device), bytes, format_bytes_up(bytes)),
          bytes});
    }
    output.lowered = std::move(*lowered);
    return output;
  }

 private:
  /// What packing takes without a budget, squeezed as long as a tighter packing is found.
  static Bytes needed_bytes(Lowering& lowering, const Strategy& strategy,
                            const LowerOptions& options) {
    Bytes needed = std::numeric_limits<Bytes>::max() / 4;
    while (const auto lowered = lowering.lower(strategy, {needed - 1, 0}, options)) {
      needed = lowered->plan.device_bytes();
    }
    return needed;
  }
};

}  // namespace

std::unique_ptr<Planner> make_none() { return std::make_unique<None>(); }

}  // namespace tidepool
