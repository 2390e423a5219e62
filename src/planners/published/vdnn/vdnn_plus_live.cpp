#include "planners/published/vdnn/vdnn_plus_live.h"

#include "planners/published/modnn/sub_batch.h"
#include "planners/published/vdnn/vdnn_dyn.h"
#include "planners/registry.h"
#include "planners/toolkit/published_output.h"

namespace tidepool {
namespace {

class VdnnPlusLive : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "vdnn-plus-live"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    const auto chosen = modnn::sub_batches_from_chosen(context, {});
    if (!chosen) return fail(chosen.error());
    // The rule is about the fastest algorithms; where it has no size, vDNN's own may do with less.
    const std::vector<std::int64_t> sizes =
        chosen->fits ? chosen->sizes : context.workload().sub_batches();
    return in_first_size(context, sizes, "vDNN+", [&](Lowering& lowering) {
      return try_vdnn_dyn(context, lowering, Downgrade::in_all_rounds);
    });
  }
};

}  // namespace

std::unique_ptr<Planner> make_vdnn_plus_live() { return std::make_unique<VdnnPlusLive>(); }

PlannerInfo vdnn_plus_live_planner() {
  return {.name = "vdnn-plus-live",
          .description =
              "vdnn-dyn in rounds that moDNN's rule chooses: stronger than the published vdnn-plus",
          .make = make_vdnn_plus_live,
          .chooses_sub_batch = true,
          .chooses_algorithms = true};
}

}  // namespace tidepool
