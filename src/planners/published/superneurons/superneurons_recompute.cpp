#include "planners/published/superneurons/superneurons_recompute.h"

#include "planners/published/superneurons/segment_policy.h"
#include "planners/registry.h"

namespace tidepool {
namespace {

class SuperNeuronsRecompute : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "superneurons-recompute"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    MayDecide may = context.options().may;
    may.swap = false;
    return segment_output(context, may);
  }
};

}  // namespace

std::unique_ptr<Planner> make_superneurons_recompute() {
  return std::make_unique<SuperNeuronsRecompute>();
}

PlannerInfo superneurons_recompute_planner() {
  return {.name = "superneurons-recompute",
          .description = "recomputes outputs of cheap layers and swaps nothing (SuperNeurons)",
          .make = make_superneurons_recompute,
          .chooses_algorithms = true};
}

}  // namespace tidepool
