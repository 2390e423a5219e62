#include "planners/published/superneurons/superneurons.h"

#include "planners/published/superneurons/segment_policy.h"
#include "planners/registry.h"

namespace tidepool {
namespace {

class SuperNeurons : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "superneurons"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    return segment_output(context, context.options().may);
  }
};

}  // namespace

std::unique_ptr<Planner> make_superneurons() { return std::make_unique<SuperNeurons>(); }

PlannerInfo superneurons_planner() {
  return {.name = "superneurons",
          .description = "swaps convolutions' outputs, recomputes those of cheap layers",
          .make = make_superneurons,
          .chooses_algorithms = true};
}

}  // namespace tidepool
