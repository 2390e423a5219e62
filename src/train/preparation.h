// What comes before the first iteration: measure, plan, prove. All of it inside the budget.
#pragma once

#include <optional>

#include "train/job.h"
#include "train/planning.h"
#include "train/profiling.h"
#include "train/proven_gap.h"
#include "train/training_state.h"

namespace tidepool {

/// What a training starts with.
struct Preparation {
  Budget budget;
  Bytes unlimited_peak = 0;  ///< load, computed
  Machine machine;
  ProfileSource profile;
  ObtainedPlan plan;
  ProvenGap gap;
  /// An iteration without a budget as predicted, same algorithms.
  Nanos predicted_unlimited{};
  std::optional<nn::Checkpoint> checkpoint;  ///< what `resume` names

  [[nodiscard]] const Lowered& lowered() const { return plan.planned.lowered; }
  [[nodiscard]] double predicted_overhead() const;
};

/// Measures the job's ops where no file and no cache has them, plans and proves.
Result<Preparation> prepare(Job& job, const TrainingSpec& spec, const Budget& budget,
                            Planner& planner, Observer& observer);

}  // namespace tidepool
