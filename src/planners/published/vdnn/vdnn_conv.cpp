#include "planners/published/vdnn/vdnn_conv.h"

#include <fmt/format.h>

#include "planners/published/vdnn/offload_policy.h"
#include "planners/registry.h"
#include "planners/toolkit/published_output.h"

namespace tidepool {
namespace {

class VdnnConv : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "vdnn-conv"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    if (!context.options().may.swap) return PlannerOutput{context.everything_kept(), {}};
    const Lowering& lowering = context.lowering();
    auto offloaded =
        offload(lowering, Offloaded::convolutions, context.algorithms(lowering.program()));
    if (!offloaded) return fail(offloaded.error());
    return published_output(
        context, std::move(offloaded->strategy),
        fmt::format("{} inputs of convolutions are offloaded", offloaded->offloaded), "vDNN");
  }
};

}  // namespace

std::unique_ptr<Planner> make_vdnn_conv() { return std::make_unique<VdnnConv>(); }

PlannerInfo vdnn_conv_planner() {
  return {.name = "vdnn-conv",
          .description = "offloads the inputs of convolutions only (vDNN)",
          .make = make_vdnn_conv};
}

}  // namespace tidepool
