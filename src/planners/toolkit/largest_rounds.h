// LargestRounds: a planner that leaves the sub-batch alone, made one that chooses it.
#pragma once

#include <memory>

#include "planners/planner.h"

namespace tidepool {

/// Takes the largest of the workload's sub-batches with which `inner` has a plan of its own; where
/// it has none with any, the fastest streaming schedule. All of them share one time limit. Fails as
/// with the smallest.
class LargestRounds : public Planner {
 public:
  explicit LargestRounds(std::unique_ptr<Planner> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] std::string_view name() const override { return inner_->name(); }
  Result<PlannerOutput> plan(PlannerContext& context) override;

 private:
  Result<PlannerOutput> plan_in_rounds(PlannerContext& context, std::int64_t sub_batch);

  std::unique_ptr<Planner> inner_;
};

}  // namespace tidepool
