#include "planners/none.h"

#include <fmt/format.h>

#include <limits>

#include "base/quantity.h"
#include "planners/registry.h"

namespace tidepool {
namespace {

class None : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "none"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    Lowering& lowering = context.lowering();
    const Strategy strategy = context.everything_kept();
    Trial trial = place(lowering, strategy, context.budget(), {});
    if (trial.lowered) return PlannerOutput{std::move(*trial.lowered), {}};
    const Bytes bytes = needed_bytes(lowering, strategy);
    return fail(Error{ErrorCode::infeasible,
                      fmt::format("budget {} B ({}) cannot be met without swapping: planner 'none' "
                                  "keeps every tensor and needs {} B ({}); try `planner` autoswap",
                                  context.budget().device, format_bytes(context.budget().device),
                                  bytes, format_bytes_up(bytes)),
                      bytes});
  }

 private:
  /// What packing takes without a budget, squeezed as long as a tighter packing is found.
  static Bytes needed_bytes(Lowering& lowering, const Strategy& strategy) {
    Bytes needed = std::numeric_limits<Bytes>::max() / 4;
    while (const auto lowered = place(lowering, strategy, {needed - 1, 0}, {}).lowered) {
      needed = lowered->plan.device_bytes();
    }
    return needed;
  }
};

}  // namespace

std::unique_ptr<Planner> make_none() { return std::make_unique<None>(); }

PlannerInfo none_planner() {
  return {.name = "none",
          .description = "keeps every tensor on the device",
          .make = make_none,
          .meets_every_budget = false};
}

}  // namespace tidepool
