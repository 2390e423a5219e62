#include "planners/published/vdnn/vdnn_all.h"

#include <fmt/format.h>

#include "planners/published/vdnn/offload_policy.h"
#include "planners/registry.h"
#include "planners/toolkit/published_output.h"

namespace tidepool {
namespace {

class VdnnAll : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "vdnn-all"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    if (!context.options().may.swap) return PlannerOutput{context.everything_kept(), {}};
    const Lowering& lowering = context.lowering();
    auto offloaded = offload(lowering, Offloaded::all, context.algorithms(lowering.program()));
    if (!offloaded) return fail(offloaded.error());
    return published_output(context, offloaded->strategy,
                            fmt::format("{} inputs of layers are offloaded", offloaded->offloaded),
                            "vDNN");
  }
};

}  // namespace

std::unique_ptr<Planner> make_vdnn_all() { return std::make_unique<VdnnAll>(); }

PlannerInfo vdnn_all_planner() {
  return {.name = "vdnn-all",
          .description = "offloads every layer's input in forward, prefetches by layer (vDNN)",
          .make = make_vdnn_all};
}

}  // namespace tidepool
